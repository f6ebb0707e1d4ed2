"""``harness cancel``: end a campaign's jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harness.cli.campaign_options import campaign_argument

if TYPE_CHECKING:
    from harness.layout import CampaignLayout

EPILOG = """\b
Examples:
  harness cancel quickstart
  harness cancel alcf --only "parallel_threads == 64" --state queued
\b
What was measured stays. A harness that drives the campaign is asked to cancel its jobs and to leave.
The next `harness run` of the sweep measures what is missing.
\b
Exit codes: 0 nothing that was meant is queued or running any more, 1 something still is, 2 no such campaign.
"""


@click.command(epilog=EPILOG)
@campaign_argument
@click.option("--only", metavar="EXPR", help="Only points where the expression holds, such as 'workers > 2'.")
@click.option(
    "--state",
    type=click.Choice(("queued", "running"), case_sensitive=False),
    help="Only jobs in this state; default: both.",
)
@click.option("--json", "as_json", is_flag=True, help="The outcome as JSON on stdout; progress goes to stderr.")
@click.pass_context
def cancel(context: click.Context, layout: CampaignLayout, only: str | None, state: str | None, as_json: bool) -> None:
    """Cancel a campaign's jobs, or those that --only and --state choose."""
    from rich.console import Console

    from harness.cli.cancelling import cancel_campaign
    from harness.cli.outcome import finish

    console = Console(stderr=as_json, highlight=False, emoji=False)
    outcome, left = cancel_campaign(layout, console, only, state)
    finish(outcome, console, as_json)
    context.exit(1 if left else 0)
