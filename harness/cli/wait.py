"""``harness wait``: follow a campaign's jobs until the last has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harness.cli.campaign_options import campaign_argument

if TYPE_CHECKING:
    from harness.layout import CampaignLayout

EPILOG = """\b
Examples:
  harness wait nus_cpu_cores-nus-volta
  harness wait quickstart --timeout 2h && harness table quickstart
\b
Nothing is submitted. Where another harness drives the campaign, its end is waited for.
\b
Exit codes: 0 all that ended succeeded, 1 something failed, 2 no such campaign, 124 time-out,
130 interrupted (the jobs go on).
"""
TIMED_OUT = 124


@click.command(epilog=EPILOG)
@campaign_argument
@click.option("--timeout", metavar="TIME", help="Give up after this time: 90s, 30m, 2h, HH:MM:SS.")
@click.option("--json", "as_json", is_flag=True, help="The outcome as JSON on stdout; progress goes to stderr.")
@click.pass_context
def wait(context: click.Context, layout: CampaignLayout, timeout: str | None, as_json: bool) -> None:
    """Wait until a campaign's jobs have ended."""
    from rich.console import Console

    from harness.cli.outcome import finish
    from harness.cli.waiting import wait_for

    console = Console(stderr=as_json, highlight=False, emoji=False)
    outcome, timed_out = wait_for(layout, _seconds(timeout), console)
    code = finish(outcome, console, as_json)
    context.exit(TIMED_OUT if timed_out else code)


def _seconds(text: str | None) -> float | None:
    from harness.units import parse_duration_s

    try:
        return None if text is None else float(parse_duration_s(text))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--timeout") from None
