"""A sweep taken from its plan to the end of its last job, with words on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rich.console import Console
from rich.markup import escape

from harness.cli import preflight
from harness.cli.campaign_options import handle
from harness.cli.interrupts import orderly
from harness.cli.labels import clock_text
from harness.cli.options import SweepChoice
from harness.cli.outcome import Outcome, outcome_of
from harness.cli.progress import RunProgress
from harness.jobs.drive import Driver, Stop
from harness.jobs.ledger import read_statuses
from harness.jobs.modes import How, plan_batches
from harness.jobs.provenance import outdated
from harness.jobs.render import lost_log
from harness.jobs.session import for_concurrency, opened
from harness.jobs.tasks import missing_tasks, task_of, withheld
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign, Task
from harness.model.evidence import read_exit
from harness.model.job import JobState
from harness.model.ledger import AttemptKey, AttemptStatus
from harness.plan.place import plural

#: a cancelled job may take the engine's grace and mpirun's own before it has ended
CANCEL_PATIENCE_S = 60.0
INTERRUPTED = 130


@dataclass(frozen=True)
class Wishes:
    """``points``: ids of the points meant; None: all of the sweep."""

    fresh: bool = False
    how: How = How()
    retries: int = 0
    follow: bool = True
    points: frozenset[str] | None = None


class Relay:
    """Reports go to the progress display once there is one; what reconciliation finds before is of no interest."""

    def __init__(self) -> None:
        self.target: RunProgress | None = None

    def __call__(self, key: AttemptKey, status: AttemptStatus) -> None:
        if self.target is not None:
            self.target.report(key, status)


def run_sweep(choice: SweepChoice, wishes: Wishes, console: Console) -> Outcome:
    """Submit what is missing of a sweep and, unless ``wishes`` say otherwise, follow it to its end."""
    if choice.ladder and wishes.how.mode == "auto":
        # rungs are compared with each other, so they run in one allocation, in random order
        wishes = replace(wishes, how=replace(wishes.how, mode="pack"))
    planned, cluster = choice.plan()
    cluster = for_concurrency(cluster, wishes.how.jobs)
    layout = choice.layout(planned)
    tasks = [task for task in planned.tasks if wishes.points is None or task.point_id in wishes.points]
    statuses = read_statuses(layout.ledger)
    missing = missing_tasks(tasks, statuses, wishes.fresh, outdated(planned, layout, statuses))
    preflight.check(cluster, [planned.points[point_id] for point_id in dict.fromkeys(t.point_id for t in missing)])
    show_refusals(planned, console)
    relay, stop, say = Relay(), Stop(), partial(console.print, markup=False, soft_wrap=True)
    with (
        orderly(stop),
        opened(layout, choice.project_root, relay, (planned, cluster), wishes.how, wishes.retries, stop, say) as driver,
    ):
        old = outdated(driver.workshop.campaign, layout, driver.ledger.statuses)
        missing = missing_tasks(tasks, driver.ledger.statuses, wishes.fresh, old)
        show_outdated(old, console)
        show_doubts(driver, missing, console)
        console.print(announce(driver, tasks, missing, "--fresh measures again"), soft_wrap=True)
        announce_jobs(driver, missing, wishes.how, console)
        return drive(driver, tasks, missing, relay, console, wishes.follow)


def drive(
    driver: Driver, tasks: Sequence[Task], missing: Sequence[Task], relay: Relay, console: Console, follow: bool
) -> Outcome:
    """Submit ``missing``, follow everything that is under way, and say how ``tasks`` stand then."""
    campaign, layout = driver.workshop.campaign, driver.workshop.layout
    chosen, active = set(missing), {task_of(key) for key in driver.watcher.active()}
    wanted = [*missing, *(task for task in tasks if task in active and task not in chosen)]
    with RunProgress(console, campaign, layout, wanted) as progress:
        relay.target = progress
        if follow:
            driver.run(missing)
        else:
            driver.submit_all(missing)
        if driver.stop.wanted:
            _leave(driver, console)
    outcome = outcome_of(campaign, layout, tasks, driver.ledger.statuses, driver.ledger.damaged)
    outcome.interrupted = INTERRUPTED if driver.stop.wanted else 0
    return outcome


def _leave(driver: Driver, console: Console) -> None:
    """Jobs of this machine are cancelled, for nobody would follow them; a cluster's stay, unless asked otherwise."""
    active = driver.watcher.active()
    if active and (driver.site.is_local or driver.stop.reason == "request"):
        console.print(f"cancelling {len(active)} jobs and waiting for their evidence …")
        driver.cancel_active(CANCEL_PATIENCE_S)
    elif active:
        follow = f"`harness wait {handle(driver.workshop.layout)}` follows them"
        console.print(f"{len(active)} jobs stay with the scheduler; {follow}", markup=False, soft_wrap=True)
    console.print("the same command takes the campaign up where it stands")


def announce(driver: Driver, tasks: Sequence[Task], missing: Sequence[Task], again: str = "") -> str:
    """What will run, what was measured before, and how long it may take; ``again``: how all of it is measured anew."""
    campaign = driver.workshop.campaign
    active = len(driver.watcher.active())
    statuses = driver.ledger.statuses
    measured = len(tasks) - len(missing_tasks(tasks, statuses)) - len(withheld(tasks, statuses))
    head = f"[bold]{escape(campaign.name)}[/] on {escape(campaign.cluster)}: {plural(len(tasks), 'run')}"
    done = [f"{measured - active} measured already"] if measured > active else []
    going = [f"{active} under way"] if active else []
    todo = [f"{len(missing)} to run, {_cost(driver, missing)}"] if missing else ["nothing to run"]
    hint = f"; {again}" if again and not missing and not active else ""
    return f"{head}; {', '.join([*done, *going, *todo])}{hint}"


def announce_jobs(driver: Driver, missing: Sequence[Task], how: How, console: Console) -> None:
    """How the runs become jobs, and why; nothing where that is as ever, one by one on this machine."""
    workshop = driver.workshop
    plan = plan_batches(workshop.campaign, workshop.cluster, missing, how, "")
    if plan.batches and not (driver.site.is_local and how.mode == "auto"):
        console.print(f"jobs: {plan.words}", markup=False, soft_wrap=True)


def _cost(driver: Driver, missing: Sequence[Task]) -> str:
    """From earlier runs of the same points where most were run before, else from the time limits."""
    campaign, layout = driver.workshop.campaign, driver.workshop.layout
    lasted_s = {
        key.point_id: _lasted_s(layout, key)
        for key, status in driver.ledger.statuses.items()
        if status.state is JobState.SUCCEEDED
    }
    known = [seconds for task in missing if (seconds := lasted_s.get(task.point_id))]
    together = min(driver.room.limit, len(missing)) if driver.site.is_local else 1
    if len(known) * 2 >= len(missing):
        return f"about {clock_text(sum(known) / len(known) * len(missing) / together)} by earlier runs"
    most_s = sum(campaign.points[task.point_id].placement.walltime_s for task in missing)
    return f"at most {clock_text(most_s / together)} by their time limits"


def _lasted_s(layout: CampaignLayout, key: AttemptKey) -> float | None:
    record = read_exit(layout.attempt(*key).exit)
    return record.ended_unix_s - record.started_unix_s if record else None


def show_doubts(driver: Driver, missing: Sequence[Task], console: Console) -> None:
    """What will probably make jobs on a cluster fail, or keep them from telling why they did."""
    cluster, points = driver.workshop.cluster, driver.workshop.campaign.points
    for doubt in preflight.doubts(cluster, [points[task.point_id] for task in missing]):
        console.print(f"[yellow]data[/]  {escape(doubt)}", soft_wrap=True)
    if missing and (lost := lost_log(cluster, points[missing[0].point_id].placement, driver.workshop.layout.root)):
        console.print(f"[yellow]log[/]   {escape(lost)}", soft_wrap=True)


def show_outdated(outdated: Mapping[AttemptKey, Sequence[str]], console: Console) -> None:
    """Which successes no longer stand for what is planned, and why."""
    for fields, count in Counter(", ".join(fields) for fields in outdated.values()).most_common():
        console.print(f"[yellow]outdated[/]  {count} runs: {escape(fields)} changed since", soft_wrap=True)


def show_refusals(campaign: Campaign, console: Console) -> None:
    """Points that cannot run here, by reason."""
    for reason, count in Counter(refusal.reason for refusal in campaign.refusals).most_common():
        console.print(f"[yellow]refused[/]  {count} points: {escape(reason)}", soft_wrap=True)
