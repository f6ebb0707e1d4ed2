"""``harness table``: a campaign's points in the terminal and as files; pivots of two axes; scaling; MLPerf lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.campaign_choice import campaign_options, chosen
from harness.errors import UserError, nearest, of_the_system

if TYPE_CHECKING:
    import pandas as pd

    from harness.model.campaign import Campaign
    from harness.report.grid import Grid

EPILOG = """\b
Examples:
  harness table quickstart
  harness table quickstart --scaling --format latex -o scaling.tex
  harness table quickstart --format parquet -o points.parquet
  harness table alcf_threads_prefetch --pivot parallel_threads prefetch
Each rate is images / elapsed time in the steady window, with its 95 % interval: over the repeats, or within the only
run there is (in --json: `interval`).
Formats parquet and mllog hold all points or runs with full numbers; mllog are lines of MLPerf's logging, into a
folder that there is (-o DIR) as a file for each run.
"""
_FORMATS = ("terminal", "csv", "markdown", "latex", "parquet", "mllog")


@click.command(epilog=EPILOG)
@campaign_options
@click.option("--pivot", nargs=2, metavar="ROWS COLUMNS", help="images/s with one axis down and another across.")
@click.option("--scaling", is_flag=True, help="Speed-up and efficiency along the campaign's primary axis.")
@click.option("--format", "form", type=click.Choice(_FORMATS), default="terminal", show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write into this file; mllog: or this folder, a file for each run.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the points with full numbers as JSON.")
def table(
    campaign: str,
    results: Path | None,
    pivot: tuple[str, str] | None,
    scaling: bool,
    form: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Print a campaign's table, or write it in other forms."""
    if (pivot or scaling) and (form in ("parquet", "mllog") or as_json):
        raise click.UsageError("parquet, mllog and --json hold all points: leave --pivot and --scaling out")
    if form == "parquet" and output is None:
        raise click.UsageError("parquet is binary: give -o FILE")
    layout = chosen(campaign, results)
    from harness.analysis.campaigns import load_campaign
    from harness.cli.collected import collected
    from harness.report import export, grid, mllog, scaling_grid, tables

    described, runs = load_campaign(layout), collected(layout)
    if as_json:
        _out(json.dumps(tables.points_records(runs, described), ensure_ascii=False, indent=1) + "\n", output)
    elif form == "parquet":
        _out(export.to_parquet(runs, described), output)
    elif form == "mllog":
        _out_logs(mllog.mllog_texts(runs), output)
    else:
        made = [scaling_grid.scaling_grid(runs, described)] if scaling else [grid.points_grid(runs, described)]
        _out_grids(_pivots(runs, described, pivot) if pivot else made, form, output)


def _out_grids(made: list[Grid], form: str, output: Path | None) -> None:
    from rich.console import Console

    from harness.report import export, tables

    if form == "terminal" and output is None:
        for one in made:
            tables.print_grid(one, Console(soft_wrap=False, emoji=False))
        return
    # a file without a format is one for people
    writers = {"csv": tables.to_csv, "latex": export.to_latex}
    _out("".join(writers.get(form, tables.to_markdown)(one) for one in made), output)


def _out_logs(logs: dict[str, str], output: Path | None) -> None:
    """All logs in one, or each in a file of its own where ``output`` is a folder: MLPerf's checker takes one run."""
    if output is None or not output.is_dir():
        _out("".join(logs.values()), output)
        return
    for name, text in logs.items():
        _out(text, output / name)


def _out(content: str | bytes, output: Path | None) -> None:
    from harness.files import write_atomically

    if output is None:
        click.echo(content, nl=False)
        return
    try:
        write_atomically(output, content)
    except OSError as error:
        raise UserError(of_the_system(error, output)) from None
    click.echo(str(output))


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
