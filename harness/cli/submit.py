"""``harness submit``: hand a sweep's missing jobs to the scheduler and return."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harness.cli.campaign_options import how_options, retries_option
from harness.cli.options import SweepChoice, sweep_options

if TYPE_CHECKING:
    from harness.jobs.modes import How

EPILOG = """\b
Examples:
  harness submit configs/sweeps/nus_cpu_cores.yml --cluster nus-volta
  harness submit configs/sweeps/quickstart.yml && harness status quickstart --watch
\b
On a cluster the jobs are queued. On this machine a harness in the background runs them one after
another; its messages go to harness.log in the campaign's directory.
\b
Exit codes: 0 submitted, 1 the scheduler refused some, 2 bad input, 130 interrupted.
"""


@click.command(epilog=EPILOG)
@sweep_options
@click.option("--fresh", is_flag=True, help="Measure everything again; earlier results are kept beside the new ones.")
@how_options
@retries_option
@click.option("--json", "as_json", is_flag=True, help="The outcome as JSON on stdout; progress goes to stderr.")
@click.pass_context
def submit(context: click.Context, choice: SweepChoice, fresh: bool, how: How, retries: int, as_json: bool) -> None:
    """Submit a sweep's missing jobs and return."""
    from rich.console import Console

    from harness.cli.background import run_in_background
    from harness.cli.campaign_run import Wishes, run_sweep
    from harness.cli.outcome import finish

    console = Console(stderr=as_json, highlight=False, emoji=False)
    wishes = Wishes(fresh=fresh, how=how, retries=retries, follow=False)
    if choice.plan()[1].scheduler == "local":
        outcome = run_in_background(choice, wishes, console)
    else:
        outcome = run_sweep(choice, wishes, console)
    context.exit(finish(outcome, console, as_json))
