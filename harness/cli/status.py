"""``harness status``: how a campaign's jobs stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harness.cli.campaign_options import campaign_argument

if TYPE_CHECKING:
    from harness.cli.outcome import Outcome
    from harness.jobs.view import Asking
    from harness.layout import CampaignLayout

EPILOG = """\b
Examples:
  harness status quickstart
  harness status quickstart --watch
  harness status results/quickstart --json
\b
Exit codes: 0 nothing has failed, 1 something has, 2 no such campaign.
"""


@click.command(epilog=EPILOG)
@campaign_argument
@click.option("--watch", is_flag=True, help="A live table until nothing is queued or running.")
@click.option(
    "--interval", type=click.FloatRange(min=0.5), default=5.0, metavar="S", help="Seconds between looks; default: 5."
)
@click.option("--all", "show_all", is_flag=True, help="List the runs that succeeded, too.")
@click.option("--ask/--no-ask", default=True, help="Ask the scheduler about jobs that are under way.")
@click.option("--json", "as_json", is_flag=True, help="As JSON: states, runs, reasons, directories.")
@click.pass_context
def status(
    context: click.Context,
    layout: CampaignLayout,
    watch: bool,
    interval: float,
    show_all: bool,
    ask: bool,
    as_json: bool,
) -> None:
    """Show the state of a campaign's jobs."""
    import time

    from rich.console import Console

    from harness.cli import status_view
    from harness.jobs.view import Late, Rarely

    site = Late(lambda: _site(layout)) if ask and layout.cluster.exists() else None
    console = Console(stderr=as_json, highlight=False, emoji=False)
    if watch:
        rarely = Rarely(site, time.monotonic, interval) if site else None
        outcome = status_view.watch(lambda: look(layout, rarely), console, show_all, interval)
    else:
        outcome = look(layout, site)
    status_view.show(outcome, console, show_all)
    if site is not None and site.silence:
        silence = " ".join(site.silence.split())
        said = f"the scheduler does not answer: {silence}; shown is what was known before"
        console.print(said, style="yellow", markup=False, soft_wrap=True)
    if outcome.damaged:
        from harness.model.ledger import NOT_SHOWN, damage_text

        click.echo(f"harness: {damage_text(layout.ledger, outcome.damaged, NOT_SHOWN)}", err=True)
    if as_json:
        import json

        click.echo(json.dumps(outcome.as_json(), ensure_ascii=False))
    context.exit(outcome.exit_code)


def _site(layout: CampaignLayout) -> Asking:
    from harness.jobs.campaign import read_cluster
    from harness.jobs.ledger import is_text_only
    from harness.jobs.site import Site

    return Site(read_cluster(layout.cluster), as_text=is_text_only(layout.ledger))


def look(layout: CampaignLayout, site: Asking | None) -> Outcome:
    """The campaign as it stands now."""
    from harness.cli.outcome import outcome_of
    from harness.jobs.campaign import load_campaign
    from harness.jobs.view import present

    campaign, damaged = load_campaign(layout), list[int]()
    return outcome_of(campaign, layout, campaign.tasks, present(campaign, layout, site, damaged), damaged)
