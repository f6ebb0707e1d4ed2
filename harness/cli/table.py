"""``harness table``: a campaign's points in the terminal, as CSV, Markdown or JSON; pivots of two axes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.campaign_choice import campaign_options, chosen
from harness.errors import UserError, nearest

if TYPE_CHECKING:
    import pandas as pd

    from harness.model.campaign import Campaign
    from harness.report.grid import Grid

EPILOG = """\b
Examples:
  harness table quickstart
  harness table quickstart --format markdown > table.md
  harness table alcf_threads_prefetch --pivot parallel_threads prefetch
Each rate is images / elapsed time in the steady window, with its 95 % interval over the repeats.
"""


@click.command(epilog=EPILOG)
@campaign_options
@click.option("--pivot", nargs=2, metavar="ROWS COLUMNS", help="images/s with one axis down and another across.")
@click.option(
    "--format", "form", type=click.Choice(["terminal", "csv", "markdown"]), default="terminal", show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="Print the points with full numbers as JSON.")
def table(campaign: str, results: Path | None, pivot: tuple[str, str] | None, form: str, as_json: bool) -> None:
    """Print a campaign's table."""
    layout = chosen(campaign, results)
    from rich.console import Console

    from harness.analysis.campaigns import load_campaign
    from harness.analysis.collect import collect
    from harness.report import grid, tables

    described, runs = load_campaign(layout), collect(layout)
    if as_json:
        click.echo(json.dumps(tables.points_records(runs, described), ensure_ascii=False, indent=1))
        return
    made = _pivots(runs, described, pivot) if pivot else [grid.points_grid(runs, described)]
    for one in made:
        if form == "terminal":
            tables.print_grid(one, Console(soft_wrap=False))
        else:
            click.echo(tables.to_csv(one) if form == "csv" else tables.to_markdown(one), nl=False)


def _pivots(runs: pd.DataFrame, campaign: Campaign, pivot: tuple[str, str]) -> list[Grid]:
    """A pivot for each combination of the other varied axes.

    Raises:
        UserError: for an axis that the campaign does not vary.
    """
    from harness.report import grid

    for name in pivot:
        if name not in campaign.varied:
            raise UserError(f"{campaign.name} does not vary {name!r}; {nearest(name, campaign.varied)}")
    return grid.pivot_grids(runs, campaign, *pivot)
