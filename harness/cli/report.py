"""``harness report``: a campaign as one HTML file that opens offline."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.campaign_choice import campaign_options, chosen
from harness.errors import UserError

if TYPE_CHECKING:
    from harness.analysis.capacity import Group
    from harness.analysis.recommend import Answer
    from harness.layout import CampaignLayout
    from harness.model.campaign import Campaign
    from harness.report.advice import Directives

EPILOG = """\b
Examples:
  harness report quickstart
  harness report quickstart -o quickstart.html
One file of about 5 MB with all that it shows: what to request, findings, charts, a table of points down to each run's
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
    from rich.console import Console

    from harness.analysis.campaigns import load_campaign
    from harness.cli.collected import collected
    from harness.report import html

    path, described = output or layout.report, load_campaign(layout)
    limits, directives = _cluster(layout, described)
    with Console(stderr=True, emoji=False).status("collecting, fitting the model and drawing …"):
        html.write(layout, collected(layout), described, path, limits, directives)
    if as_json:
        click.echo(json.dumps({"file": str(path), "bytes": path.stat().st_size}, ensure_ascii=False))
    else:
        click.echo(str(path))


def _cluster(layout: CampaignLayout, campaign: Campaign) -> tuple[dict[str, int], Directives | None]:
    """What a node has, and job-script lines in the cluster's spelling; nothing where its description is not there."""
    if not layout.cluster.is_file():
        return {}, None
    from harness.cli.request_lines import request_of
    from harness.jobs.campaign import read_cluster

    cluster = read_cluster(layout.cluster)

    def lines(answer: Answer, group: Group) -> Sequence[str]:
        wanted = request_of(answer, group, campaign, cluster, None)
        if wanted is None:
            return ()
        return wanted.lines or tuple(f"the cluster would refuse it: {reason}" for reason in wanted.refusals)

    return {"cpu_cores": cluster.node.cores}, lines
