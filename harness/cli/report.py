"""``harness report``: a campaign as one HTML file that opens offline."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import click

from harness.cli.campaign_choice import campaign_options, chosen
from harness.errors import UserError

EPILOG = """\b
Examples:
  harness report quickstart
  harness report quickstart -o quickstart.html
One file of about 5 MB with all that it shows: summary in words, findings, charts, a table of points down to each run's
script, environment and step trace. It may be sent to others; it opens in any browser without a network.
"""


@click.command(epilog=EPILOG)
@campaign_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; default: report.html in the campaign's directory.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the file's name and size as JSON.")
def report(campaign: str, results: Path | None, output: Path | None, as_json: bool) -> None:
    """Write a campaign's report: one HTML file that opens offline."""
    layout = chosen(campaign, results)
    if importlib.util.find_spec("plotly") is None:
        raise UserError("the report needs plotly; install it with: pip install '.[report]'")
    from harness.analysis.campaigns import load_campaign
    from harness.analysis.collect import collect
    from harness.report import html

    path = output or layout.report
    html.write(layout, collect(layout), load_campaign(layout), path)
    if as_json:
        click.echo(json.dumps({"file": str(path), "bytes": path.stat().st_size}, ensure_ascii=False))
    else:
        click.echo(str(path))
