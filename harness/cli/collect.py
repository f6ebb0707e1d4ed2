"""``harness collect``: evidence → runs.csv, runs.parquet, steps.parquet; logs of other programs → a table."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import click

from harness.cli.campaign_choice import chosen, results_option
from harness.errors import UserError

EPILOG = """\b
Examples:
  harness collect quickstart
  harness collect quickstart --json
  harness collect --logs 'logs/**/*.out' --pattern alcf
  harness collect --logs train.log --pattern keras --fact batch_size=64 -o train.csv
  harness collect --dictionary > results/data_dictionary.md
Writes runs.csv, runs.parquet and steps.parquet into the campaign's directory. The columns are described in
results/data_dictionary.md. Derived files may be deleted; they are built anew from the evidence.
With --logs, rates are computed anew from the steps (images / elapsed time) and compared with those printed.
"""


def _print_dictionary(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from harness.analysis.dictionary import dictionary_markdown

        click.echo(dictionary_markdown(), nl=False)
        context.exit()


@click.command(epilog=EPILOG)
@click.argument("campaign", required=False)
@results_option
@click.option("--logs", multiple=True, metavar="GLOB", help="Read these logs of another program instead.")
@click.option("--pattern", metavar="NAME|FILE", help="How to read --logs: a shipped pattern, or a pattern file.")
@click.option(
    "--fact", "facts", multiple=True, metavar="NAME=VALUE", help="What the logs do not say, as batch_size=64."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Table of --logs: .csv, .parquet."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was collected as JSON.")
@click.option(
    "--dictionary",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_dictionary,
    help="Print the description of all columns as Markdown, and leave.",
)
def collect(
    campaign: str | None,
    results: Path | None,
    logs: tuple[str, ...],
    pattern: str | None,
    facts: tuple[str, ...],
    output: Path | None,
    as_json: bool,
) -> None:
    """Derive the table of runs from a campaign's evidence, or from logs of other programs."""
    if logs:
        if campaign is not None or pattern is None:
            raise click.UsageError("--logs needs --pattern NAME and takes no campaign; quote the glob")
        from harness.cli.collect_logs import collect_logs

        collect_logs(logs, pattern, facts, output, as_json)
    elif campaign is None:
        raise click.UsageError("name a campaign, or give --logs GLOB --pattern NAME")
    else:
        _collect_campaign(campaign, results, as_json)


def _collect_campaign(campaign: str, results: Path | None, as_json: bool) -> None:
    layout = chosen(campaign, results)
    if not os.access(layout.root, os.W_OK):
        raise UserError(f"{layout.root} cannot be written; `harness table` and `harness compare` only read it")
    from rich.console import Console
    from rich.progress import Progress

    from harness.analysis.collect import collect_rows

    damage: list[str] = []
    with Progress(console=Console(stderr=True, emoji=False), transient=True) as progress:
        task = progress.add_task("collecting", total=None)
        table = collect_rows(layout, lambda done, total: progress.update(task, completed=done, total=total), damage)
    for text in damage:
        click.echo(f"harness: {text}", err=True)
    states = dict(Counter(table["state"].to_pylist()).most_common())
    if as_json:
        files = [str(path) for path in (layout.runs_csv, layout.runs_parquet, layout.steps_parquet)]
        click.echo(
            json.dumps({"attempts": len(table), "states": states, "files": files, "damage": damage}, ensure_ascii=False)
        )
        return
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none yet"
    click.echo(f"{len(table)} attempts ({counts}) → {layout.runs_csv}, {layout.runs_parquet.name}")
