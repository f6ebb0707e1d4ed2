"""``harness stalls``: where the time of a step goes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.campaign_choice import campaign_options, chosen

if TYPE_CHECKING:
    from rich.console import Console

    from harness.analysis.ladder import Ladder

EPILOG = """\b
Examples:
  harness run configs/sweeps/quickstart.yml --ladder --only "cpu_cores == 2" && harness stalls quickstart-ladder
  harness stalls quickstart --json
\b
By ladder: what each part adds to a step, as the difference of two runs in one allocation; such a campaign is made
with --ladder. Recorded: what a single run saw itself. docs/measuring.md says how they are obtained.
"""
_AU = (
    "AU: accelerator utilisation as in MLPerf Storage, the share of the time spent computing and exchanging gradients."
)


@click.command(epilog=EPILOG)
@campaign_options
@click.option("--json", "as_json", is_flag=True, help="Print the parts as JSON, in seconds per step.")
def stalls(campaign: str, results: Path | None, as_json: bool) -> None:
    """Show where the time of a step goes, by ladder and by recorded waits."""
    layout = chosen(campaign, results)
    from rich.console import Console

    from harness.analysis.campaigns import load_campaign
    from harness.analysis.ladder import ladders
    from harness.analysis.points import point_results
    from harness.analysis.scaling import naming_axes, point_label
    from harness.cli.collected import collected
    from harness.report.prose import print_prose

    table, planned = collected(layout), load_campaign(layout)
    found = ladders(point_results(table))
    names = naming_axes([ladder.result for ladder in found], planned.varied) if found else []
    labels = [point_label(ladder.result, names) for ladder in found]
    if as_json:
        parts = [_as_json(label, ladder) for label, ladder in zip(labels, found, strict=True)]
        click.echo(json.dumps(parts, ensure_ascii=False, indent=1))
        return
    console = Console(highlight=False, emoji=False)
    if not found:
        console.print(f"{layout.root.name}: nothing was measured yet")
    for label, ladder in zip(labels, found, strict=True):
        _print(label or planned.name, ladder, console)
    if any(_au(ladder) is not None for ladder in found):
        print_prose(console, _AU)
    if found and not any(len(ladder.parts) > 1 for ladder in found):
        print_prose(console, "No rungs were measured: `harness run SWEEP --ladder` tells what each part adds.")


def _au(ladder: Ladder) -> float | None:
    return ladder.result.means.get("au_percent")


def _as_json(label: str, ladder: Ladder) -> dict[str, Any]:
    parts = [*ladder.parts, *([ladder.residual] if ladder.residual else [])]
    return {
        "point_id": ladder.result.point_id,
        "point": label,
        "step_s": ladder.measured_s,
        "ladder": [
            {"part": p.label, "seconds": p.seconds, "low": _finite(p.low), "high": _finite(p.high)} for p in parts
        ],
        "recorded": dict(ladder.recorded),
        "au_percent": _au(ladder),
        "disagreement": ladder.disagreement or None,
        "doubts": list(ladder.doubts),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _print(label: str, ladder: Ladder, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    from harness.report.prose import print_prose

    au = _au(ladder)
    busy = f", {au:.0f} % of it computing (AU)" if au is not None else ""
    print_prose(console, Text.assemble((label, "bold"), f": a step takes {ladder.measured_s * 1e3:.4g} ms{busy}"))
    several = len(ladder.parts) > 1
    table = Table(box=None, pad_edge=True)
    for name, justify in (("part", "left"), ("ms", "right"), ("95 % interval", "right"), ("share", "right")):
        table.add_column(name, justify="right" if justify == "right" else "left")
    for part in [*ladder.parts, *([ladder.residual] if ladder.residual else [])]:
        interval = f"{part.low * 1e3:.3g} to {part.high * 1e3:.3g}" if math.isfinite(part.low) else "unknown"
        share = f"{part.seconds / ladder.measured_s:.0%}"
        table.add_row(part.label, f"{part.seconds * 1e3:.3g}", interval, share)
    if several:
        console.print(table)
    seen = ", ".join(f"{name} {seconds * 1e3:.3g} ms" for name, seconds in ladder.recorded.items() if seconds)
    print_prose(console, f"recorded: {seen}", indent=2)
    if several:
        words = ladder.disagreement or "the ladder and the recorded waits agree"
        for line in (words, *ladder.doubts):
            print_prose(console, line, indent=2)
