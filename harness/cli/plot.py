"""``harness plot``: every figure that a campaign's data support, and what is missing for the others."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.cli.campaign_choice import campaign_options, chosen
from harness.errors import UserError, nearest

EPILOG = """\b
Examples:
  harness plot quickstart
  harness plot quickstart --format pdf --only images-per-second
Figures are written into the campaign's plots/ directory. Bars are 95 % intervals, over the repeats or
within the only run there is, as the line above the panels says.
"""


@click.command(epilog=EPILOG)
@campaign_options
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(["png", "svg", "pdf"]),
    help="File format; may be given several times. Default: png and svg.",
)
@click.option("--only", "names", multiple=True, metavar="FIGURE", help="Draw this figure alone; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print files and what was skipped as JSON.")
def plot(campaign: str, results: Path | None, formats: tuple[str, ...], names: tuple[str, ...], as_json: bool) -> None:
    """Draw every figure that a campaign's data support."""
    layout = chosen(campaign, results)
    from harness.analysis.campaigns import load_campaign
    from harness.cli.collected import collected
    from harness.report import plots

    for name in names:
        if name not in plots.MAKERS:
            raise UserError(f"no figure {name!r}; {nearest(name, list(plots.MAKERS))}")
    described, runs = load_campaign(layout), collected(layout)
    drawn = plots.draw_all(layout, runs, described, formats or plots.DEFAULT_FORMATS, names)
    if as_json:
        skipped = [{"figure": name, "missing": reason} for name, reason in drawn.skipped]
        click.echo(json.dumps({"files": [str(f) for f in drawn.files], "skipped": skipped}, ensure_ascii=False))
        return
    for path in drawn.files:
        click.echo(str(path))
    for name, reason in drawn.skipped:
        click.echo(f"not drawn: {name}: {reason}")
