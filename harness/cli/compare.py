"""``harness compare``: campaigns or clusters against each other, or a campaign against a stored reference."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from harness.cli.campaign_choice import chosen, need_packages, results_option
from harness.errors import UserError, of_the_system
from harness.files import read_file

if TYPE_CHECKING:
    from harness.analysis.compare import Comparison, Side
    from harness.analysis.reference import Check, Reference
    from harness.analysis.stats import Estimate
    from harness.report.grid import Grid

EPILOG = """\b
Examples:
  harness compare nus_cpu_cores-mine nus_cpu_cores-other
  harness compare quickstart --save-reference reference.json
  harness compare quickstart --reference reference.json --tolerance 0.1
Points are joined by what they measure, so the same sweep on two clusters joins by itself. A ratio above 1 is better,
whichever direction the column has. The first campaign is the one that the others are compared with.
Exit codes: 0 compared, or the reference was kept; 1 a point regressed, is missing or doubtful; 2 bad input.
"""


@click.command(epilog=EPILOG)
@click.argument("campaigns", nargs=-1, required=True)
@results_option
@click.option("--metric", show_default="images_per_s", metavar="COLUMN", help="Column to compare.")
@click.option(
    "--reference", type=click.Path(path_type=Path, dir_okay=False), help="Check against this stored reference."
)
@click.option(
    "--save-reference", "save", type=click.Path(path_type=Path, dir_okay=False), help="Store a reference here."
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.05,
    show_default=True,
    help="Loss against the reference that is accepted, as a share.",
)
@click.option(
    "--format", "form", type=click.Choice(["terminal", "csv", "markdown"]), default="terminal", show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="Print full numbers as JSON.")
def compare(
    campaigns: tuple[str, ...],
    results: Path | None,
    metric: str | None,
    reference: Path | None,
    save: Path | None,
    tolerance: float,
    form: str,
    as_json: bool,
) -> None:
    """Compare campaigns or clusters, or check one against a stored reference."""
    if (reference or save) and len(campaigns) > 1:
        raise click.UsageError("a reference belongs to one campaign")
    if reference and save:
        raise click.UsageError("check against the reference first, then store the new one in a call of its own")
    if not (reference or save) and len(campaigns) < 2:
        raise click.UsageError("name two or more campaigns, or give --reference or --save-reference")
    if reference is not None:
        stored = _reference(reference, metric)
        sides, named = _sides(campaigns, results, stored.metric)
        _check(stored, sides[0], tolerance, form, as_json)
    metric = metric or "images_per_s"
    sides, named = _sides(campaigns, results, metric)
    if save is not None:
        _save(save, sides[0], metric, named)
    else:
        _compare(sides, metric, named, form, as_json)


def _sides(campaigns: tuple[str, ...], results: Path | None, metric: str) -> tuple[list[Side], dict[str, str]]:
    layouts = [chosen(name, results) for name in campaigns]
    from harness.analysis import compare as comparing
    from harness.analysis.campaigns import load_campaign
    from harness.cli.collected import collected
    from harness.report.compare_grid import labels

    comparing.direction(metric)
    sides: list[Side] = []
    named: dict[str, str] = {}
    loaded = [(layout, load_campaign(layout)) for layout in layouts]
    # campaigns of one name in two directories, such as before and after, are told apart by these
    alike = len({one.name for _, one in loaded}) < len({layout.root.resolve() for layout in layouts})
    for layout, described in loaded:
        name = str(layout.root) if alike else described.name
        one = comparing.side(name, described.cluster, collected(layout), metric)
        sides.append(one)
        named = labels(one, described.varied) | named
    return sides, named


def _compare(sides: list[Side], metric: str, named: dict[str, str], form: str, as_json: bool) -> None:
    from harness.analysis import compare as comparing
    from harness.report.compare_grid import comparison_grids, wide_grid

    better = comparing.direction(metric)
    found = [comparing.compare(sides[0], other, better) for other in sides[1:]]
    if as_json:
        click.echo(json.dumps([_record(one, metric, named) for one in found], ensure_ascii=False, indent=1))
        return
    for one in found:
        grids = comparison_grids(one, metric, named) if form == "terminal" else [wide_grid(one, metric, named)]
        for grid in grids:
            _show(grid, form)


def _reference(path: Path, metric: str | None) -> Reference:
    need_packages()
    from harness.analysis.reference import parse

    try:
        stored = parse(read_file(path), str(path))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; write a reference with --save-reference") from None
    if metric not in (None, stored.metric):
        raise UserError(f"{path} holds {stored.metric}, not {metric}: leave --metric out, or store a reference of it")
    return stored


def _check(stored: Reference, side: Side, tolerance: float, form: str, as_json: bool) -> NoReturn:
    from harness.analysis import reference as references
    from harness.report.compare_grid import check_grid

    checks = references.check(stored, side, tolerance)
    if as_json:
        click.echo(json.dumps([_check_record(c) for c in checks], ensure_ascii=False, indent=1))
    else:
        _show(check_grid(stored, checks, side, tolerance), form)
    raise SystemExit(1 if any(c.verdict != "kept" for c in checks) else 0)


def _save(path: Path, side: Side, metric: str, named: dict[str, str]) -> None:
    from harness.analysis import compare as comparing
    from harness.analysis import reference as references
    from harness.files import write_atomically

    stored = references.store(side, metric, comparing.direction(metric), named)
    try:
        write_atomically(path, references.to_json(stored))
    except OSError as error:
        raise UserError(of_the_system(error, path)) from None
    click.echo(f"{len(stored.points)} of {len(side.results)} points → {path}", err=True)


def _show(grid: Grid, form: str) -> None:
    from rich.console import Console

    from harness.report import tables

    if form == "terminal":
        tables.print_grid(grid, Console(soft_wrap=False, emoji=False))
    else:
        click.echo(tables.to_csv(grid) if form == "csv" else tables.to_markdown(grid), nl=False)


def _record(found: Comparison, metric: str, named: dict[str, str]) -> dict[str, Any]:
    pairs = [
        {"point_id": p.point_id, "point": named[p.point_id], "first": _known(p.first), "second": _known(p.second)}
        | {"ratio": _known(p.ratio), "verdict": p.verdict}
        | {
            "normalised": [
                {k: _finite(v) for k, v in s.normalised[p.point_id].items()} for s in (found.first, found.second)
            ]
        }
        for p in found.pairs
    ]
    return {
        "metric": metric,
        "first": found.first.name,
        "second": found.second.name,
        "points": pairs,
        "geometric_mean": _numbers(found.overall),
        "only_first": list(found.only_first),
        "only_second": list(found.only_second),
        "without_value": list(found.valueless),
        "differing": {name: [list(a), list(b)] for name, (a, b) in found.differing.items()},
    }


def _check_record(found: Check) -> dict[str, Any]:
    numbers = {"then": _known(found.then), "now": _known(found.now), "ratio": _known(found.ratio)}
    return {"point_id": found.point_id, "point": found.label, "verdict": found.verdict} | numbers


def _known(estimate: Estimate) -> dict[str, Any]:
    """With what the interval rests on: between runs, within one run, or none."""
    return _numbers(estimate) | {"interval": estimate.rests_on}


def _numbers(estimate: Estimate) -> dict[str, float | None]:
    low, high = (estimate.low, estimate.high) if estimate.known else (math.nan, math.nan)
    return {"value": _finite(estimate.value), "low": _finite(low), "high": _finite(high)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
