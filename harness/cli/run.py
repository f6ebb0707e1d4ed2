"""``harness run``: from a sweep to evidence, a table, plots and words, in one command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harness.cli.options import SweepChoice, sweep_options

if TYPE_CHECKING:
    from harness.cli.outcome import Outcome

EPILOG = """\b
Examples:
  harness run configs/sweeps/quickstart.yml
  harness run configs/sweeps/quickstart.yml --set repeats=1 --only "framework == 'torch'"
  harness run configs/sweeps/nus_cpu_cores.yml --cluster nus-volta --queue volta_gpu
\b
A second call repeats nothing that was measured; --fresh does. Ctrl-C loses nothing: on this machine
the running job is cancelled and tried again next time, on a cluster the jobs stay queued.
\b
Exit codes: 0 all runs succeeded, 1 some failed, 2 bad input or something is missing, 130 interrupted.
"""


@click.command(epilog=EPILOG)
@sweep_options
@click.option("--fresh", is_flag=True, help="Measure everything again; earlier results are kept beside the new ones.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Jobs at a time; default: 1 here, the queue's limit elsewhere.",
)
@click.option(
    "--retries", type=click.IntRange(min=0), default=0, metavar="N", help="New attempts of what fails; default 0."
)
@click.option("--report/--no-report", "with_report", default=True, help="Table, plots and findings at the end.")
@click.option("--json", "as_json", is_flag=True, help="The outcome as JSON on stdout; progress goes to stderr.")
@click.pass_context
def run(
    context: click.Context,
    choice: SweepChoice,
    fresh: bool,
    jobs: int | None,
    retries: int,
    with_report: bool,
    as_json: bool,
) -> None:
    """Plan, submit, watch, collect, tabulate and plot a sweep."""
    from rich.console import Console

    from harness.cli.campaign_run import Wishes, run_sweep

    console = Console(stderr=as_json, highlight=False)
    outcome = run_sweep(choice, Wishes(fresh=fresh, jobs=jobs, retries=retries), console)
    if with_report and not outcome.interrupted:
        from harness.cli.closing import close

        outcome.files = close(outcome.layout, console)
    finish(context, outcome, console, as_json)


def finish(context: click.Context, outcome: Outcome, console: object, as_json: bool) -> None:
    """Say how it ended, and leave with the exit code that says so too."""
    from rich.console import Console

    from harness.cli.outcome import show

    assert isinstance(console, Console)
    show(outcome, console)
    if as_json:
        import json

        click.echo(json.dumps(outcome.as_json(), ensure_ascii=False))
    context.exit(outcome.exit_code)
