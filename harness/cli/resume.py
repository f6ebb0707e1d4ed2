"""``harness resume``: take a campaign up where it stands, without its sweep's file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harness.cli.campaign_options import campaign_argument, how_options, retries_option

if TYPE_CHECKING:
    from harness.jobs.modes import How
    from harness.layout import CampaignLayout

EPILOG = """\b
Examples:
  harness resume quickstart
  harness resume alcf --mode pack --no-follow
\b
Submits every run without a success or a job under way, as the campaign was last planned. A sweep whose
file has changed is taken up with `harness run SWEEP` instead.
\b
Exit codes: 0 all runs succeeded, 1 some failed, 2 no such campaign, 130 interrupted.
"""


@click.command(epilog=EPILOG)
@campaign_argument
@click.option("--follow/--no-follow", default=True, help="Follow the jobs to their end; on this machine always.")
@how_options
@retries_option
@click.option("--json", "as_json", is_flag=True, help="The outcome as JSON on stdout; progress goes to stderr.")
@click.pass_context
def resume(context: click.Context, layout: CampaignLayout, follow: bool, how: How, retries: int, as_json: bool) -> None:
    """Submit what a campaign lacks and follow it to its end."""
    from rich.console import Console

    from harness.cli.campaign_run import Wishes
    from harness.cli.outcome import finish
    from harness.cli.retrying import resume_campaign

    console = Console(stderr=as_json, highlight=False, emoji=False)
    outcome = resume_campaign(layout, Wishes(how=how, retries=retries, follow=follow), console)
    context.exit(finish(outcome, console, as_json))
