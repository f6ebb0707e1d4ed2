"""``harness submit`` on this machine: a harness in the background, since there is no batch system to hand jobs to."""

from __future__ import annotations

import sys
import time

import click
from rich.console import Console

from harness.cli import preflight
from harness.cli.campaign_options import handle
from harness.cli.campaign_run import Wishes, show_refusals
from harness.cli.options import SweepChoice
from harness.cli.outcome import Outcome, last_lines, outcome_of
from harness.errors import HarnessError
from harness.jobs import shell
from harness.jobs.ledger import read_statuses
from harness.jobs.lock import read_holder
from harness.jobs.provenance import outdated
from harness.jobs.tasks import missing_tasks, task_of
from harness.layout import CampaignLayout
from harness.model.ledger import LOOKED_FOR, NOT_SHOWN, damage_text

LOG_NAME = "harness.log"
START_PATIENCE_S = 20.0


def run_in_background(choice: SweepChoice, wishes: Wishes, console: Console) -> Outcome:
    """Start ``harness run`` detached, and return once it has taken the campaign in hand.

    Raises:
        HarnessError: it ended at once, with what it said.
    """
    campaign, cluster = choice.plan()
    layout = choice.layout(campaign)
    damaged: list[int] = []
    statuses = read_statuses(layout.ledger, damaged)
    missing = missing_tasks(campaign.tasks, statuses, wishes.fresh, outdated(campaign, layout, statuses))
    preflight.check(cluster, [campaign.points[point_id] for point_id in dict.fromkeys(t.point_id for t in missing)])
    show_refusals(campaign, console)
    if missing:
        _start(choice, wishes, layout, console)
        follow = f"`harness status {handle(layout)} --watch` follows"
        console.print(f"{len(missing)} runs go on in the background; {follow}", markup=False, soft_wrap=True)
    else:
        console.print("nothing to run: all is measured, or under way; --fresh measures again")
    if damaged:
        click.echo(f"harness: {damage_text(layout.ledger, damaged, LOOKED_FOR if missing else NOT_SHOWN)}", err=True)
    # how earlier attempts ended says nothing of what goes on now
    again = set(missing)
    tried = {key for key in statuses if task_of(key) in again}
    now = {key: status for key, status in read_statuses(layout.ledger).items() if key not in tried}
    return outcome_of(campaign, layout, campaign.tasks, now, damaged)


def _start(choice: SweepChoice, wishes: Wishes, layout: CampaignLayout, console: Console) -> None:
    layout.root.mkdir(parents=True, exist_ok=True)
    log = layout.root / LOG_NAME
    child = shell.start_detached([sys.executable, "-m", "harness", *arguments(choice, wishes)], log)
    deadline = time.monotonic() + START_PATIENCE_S
    while (holder := read_holder(layout.lock)) is None or holder.process.pid != child.pid:
        if child.poll() is not None:
            if child.returncode == 0:
                return
            raise HarnessError("the harness in the background ended at once:\n" + "\n".join(last_lines(log)))
        if time.monotonic() > deadline:
            console.print(f"the harness in the background (process {child.pid}) is slow to begin; see {log}")
            return
        time.sleep(0.05)


def arguments(choice: SweepChoice, wishes: Wishes) -> list[str]:
    """The command line of ``harness run`` that does what was asked of ``harness submit``."""
    words = ["run", "--no-report", "--results", str(choice.results_root), "--retries", str(wishes.retries)]
    named = {
        "--cluster": choice.cluster,
        "--queue": choice.queue,
        "--scale": choice.scale,
        "--campaign": choice.campaign,
        "--only": choice.only,
        "--jobs": wishes.how.jobs,
        "--mode": wishes.how.mode,
        "--max-queued": wishes.how.max_queued,
        "--rate": wishes.how.rate_per_s,
    }
    for option, value in named.items():
        words += [f"{option}={value}"] if value is not None else []
    words += [f"--set={override}" for override in choice.overrides]
    words += ["--fresh"] if wishes.fresh else []
    words += ["--ladder"] if choice.ladder else []
    return [*words, "--", str(choice.sweep)]
