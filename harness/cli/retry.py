"""``harness retry``: new attempts of what did not succeed, without touching the rest of the campaign."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harness.cli.campaign_options import campaign_argument, how_options, retries_option

if TYPE_CHECKING:
    from harness.jobs.modes import How
    from harness.layout import CampaignLayout

EPILOG = """\b
Examples:
  harness retry quickstart
  harness retry nus_cpu_cores-nus-volta --state lost --state timed_out --no-follow
\b
`harness run` of the sweep retries all of these, too, and adds what was never tried.
\b
Exit codes: 0 all retried runs succeeded, 1 some failed, 2 no such campaign, 130 interrupted.
"""
STATES = ("failed", "lost", "timed_out", "cancelled")


@click.command(epilog=EPILOG)
@campaign_argument
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    multiple=True,
    help="Retry runs in this state; may be given several times. Default: failed, lost, timed_out; with --cause all.",
)
@click.option(
    "--cause", "causes", multiple=True, metavar="WORD", help="Only with this cause, as status --json names it."
)
@click.option("--only", metavar="EXPR", help="Only points where the expression holds, such as 'workers > 2'.")
@click.option("--follow/--no-follow", default=True, help="Follow the jobs to their end; on this machine always.")
@how_options
@retries_option
@click.option("--json", "as_json", is_flag=True, help="The outcome as JSON on stdout; progress goes to stderr.")
@click.pass_context
def retry(
    context: click.Context,
    layout: CampaignLayout,
    states: tuple[str, ...],
    causes: tuple[str, ...],
    only: str | None,
    follow: bool,
    how: How,
    retries: int,
    as_json: bool,
) -> None:
    """Submit new attempts of failed, lost or timed-out jobs."""
    from rich.console import Console

    from harness.cli.campaign_run import Wishes
    from harness.cli.outcome import finish
    from harness.cli.retrying import Which, retry_campaign
    from harness.model.job import JobState

    console = Console(stderr=as_json, highlight=False, emoji=False)
    meant = states or (STATES if causes else STATES[:3])
    which = Which(frozenset(JobState(state.upper()) for state in meant), frozenset(causes), only)
    outcome = retry_campaign(layout, which, Wishes(how=how, retries=retries, follow=follow), console)
    context.exit(finish(outcome, console, as_json))
