"""``harness run``: from a sweep to evidence, a table, plots and words, in one command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harness.cli.campaign_options import how_options, retries_option
from harness.cli.options import SweepChoice, sweep_options

if TYPE_CHECKING:
    from harness.jobs.modes import How

EPILOG = """\b
Examples:
  harness run configs/sweeps/quickstart.yml
  harness run configs/sweeps/quickstart.yml --set repeats=1 --only "framework == 'torch'"
  harness run configs/sweeps/alcf_threads_prefetch.yml --scale smoke --make-data
  harness run configs/sweeps/quickstart.yml --ladder --only "cpu_cores == 2"
  harness run configs/sweeps/nus_cpu_cores.yml --cluster nus-volta --queue volta_gpu
  harness run configs/sweeps/mission.yml --cluster nus-volta --adaptive
\b
A second call repeats nothing that was measured; --fresh does. Ctrl-C loses nothing: on this machine
the running job is cancelled and tried again next time, on a cluster the jobs stay queued.
\b
Exit codes: 0 all runs succeeded, 1 some failed, 2 bad input or something is missing, 130 interrupted.
"""


@click.command(epilog=EPILOG)
@sweep_options
@click.option("--fresh", is_flag=True, help="Measure everything again; earlier results are kept beside the new ones.")
@click.option("--make-data", is_flag=True, help="First make the generated data sets that are not there yet.")
@how_options
@retries_option
@click.option(
    "--adaptive", is_flag=True, help="Measure only points that narrow the recommendation, until it is settled."
)
@click.option("--report/--no-report", "with_report", default=True, help="Table, plots and findings at the end.")
@click.option("--json", "as_json", is_flag=True, help="The outcome as JSON on stdout; progress goes to stderr.")
@click.pass_context
def run(
    context: click.Context,
    choice: SweepChoice,
    fresh: bool,
    make_data: bool,
    how: How,
    retries: int,
    adaptive: bool,
    with_report: bool,
    as_json: bool,
) -> None:
    """Plan, submit, watch, collect, tabulate and plot a sweep."""
    from rich.console import Console

    from harness.cli.adaptive_run import run_adaptively
    from harness.cli.campaign_run import Wishes, run_sweep
    from harness.cli.outcome import finish

    console = Console(stderr=as_json, highlight=False, emoji=False)
    if make_data:
        from harness.cli.make_data import make_missing

        make_missing(choice, console)
    wishes = Wishes(fresh=fresh, how=how, retries=retries)
    outcome = (run_adaptively if adaptive else run_sweep)(choice, wishes, console)
    if with_report and not outcome.interrupted:
        from harness.cli.closing import close

        outcome.files = close(outcome.layout, console)
    context.exit(finish(outcome, console, as_json))
