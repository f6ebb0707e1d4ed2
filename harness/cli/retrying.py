"""New attempts of a stored campaign's unsuccessful tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from harness.cli import preflight
from harness.cli.campaign_run import Relay, Wishes, announce, announce_jobs, drive, show_doubts
from harness.cli.filters import chosen_points
from harness.cli.interrupts import orderly
from harness.cli.outcome import Outcome, deciding
from harness.errors import UserError, nearest
from harness.jobs.campaign import load_campaign, read_cluster
from harness.jobs.causes import NEXT_STEPS, cause_of
from harness.jobs.drive import Stop
from harness.jobs.session import for_concurrency, opened
from harness.jobs.tasks import Statuses, attempts_of, missing_tasks
from harness.layout import CampaignLayout, project_root
from harness.model.campaign import Campaign, Task
from harness.model.job import JobState


@dataclass(frozen=True)
class Which:
    """The tasks meant: the state of their deciding attempt, its cause (empty: any), and an expression on the axes."""

    states: frozenset[JobState]
    causes: frozenset[str] = frozenset()
    only: str | None = None

    def check(self) -> None:
        """Raises:
        UserError: for a cause that there is not.
        """
        for cause in self.causes - NEXT_STEPS.keys():
            raise UserError(f"--cause {cause!r}: there is no such cause; {nearest(cause, sorted(NEXT_STEPS))}")


def retry_campaign(layout: CampaignLayout, which: Which, wishes: Wishes, console: Console) -> Outcome:
    """Submit a new attempt of each task whose deciding attempt is among those meant."""
    which.check()
    return _submit_again(layout, wishes, console, lambda campaign, statuses: tasks_in(campaign, statuses, which))


def resume_campaign(layout: CampaignLayout, wishes: Wishes, console: Console) -> Outcome:
    """Submit every task of a stored campaign that has neither a success nor a job under way."""

    def missing(campaign: Campaign, statuses: Statuses) -> list[Task]:
        return missing_tasks(campaign.tasks, statuses)

    return _submit_again(layout, wishes, console, missing, whole=True)


def _submit_again(
    layout: CampaignLayout,
    wishes: Wishes,
    console: Console,
    choose: Callable[[Campaign, Statuses], list[Task]],
    whole: bool = False,
) -> Outcome:
    """``whole``: tell of all tasks of the campaign, those under way too, and not of the chosen alone."""
    campaign = load_campaign(layout)
    cluster = for_concurrency(read_cluster(layout.cluster), wishes.how.jobs)
    relay, stop, planned = Relay(), Stop(), (campaign, cluster)
    root, say = project_root(Path.cwd()), partial(console.print, markup=False, soft_wrap=True)
    with orderly(stop), opened(layout, root, relay, planned, wishes.how, wishes.retries, stop, say) as driver:
        tasks = choose(campaign, driver.ledger.statuses)
        preflight.check(cluster, [campaign.points[point_id] for point_id in dict.fromkeys(t.point_id for t in tasks)])
        show_doubts(driver, tasks, console)
        console.print(announce(driver, campaign.tasks, tasks), soft_wrap=True)
        if causes := _causes(tasks, driver.ledger.statuses):
            console.print(f"again: {causes}", markup=False, soft_wrap=True)
        announce_jobs(driver, tasks, wishes.how, console)
        return drive(
            driver, campaign.tasks if whole else tasks, tasks, relay, console, wishes.follow or driver.site.is_local
        )


def tasks_in(campaign: Campaign, statuses: Statuses, which: Which) -> list[Task]:
    """The tasks whose deciding attempt is among those meant, in run order."""
    points, attempts = chosen_points(campaign, which.only), attempts_of(campaign.tasks, statuses)

    def is_meant(task: Task) -> bool:
        if task.point_id not in points or not attempts[task]:
            return False
        status = deciding(attempts[task])[1]
        return status.state in which.states and (not which.causes or cause_of(status) in which.causes)

    return [task for task in campaign.tasks if is_meant(task)]


def _causes(tasks: Collection[Task], statuses: Statuses) -> str:
    """Why these tasks need another attempt: ``2 walltime, 1 node failure``."""
    tried = [tries for tries in attempts_of(tasks, statuses).values() if tries]
    counts = Counter(cause for tries in tried if (cause := cause_of(deciding(tries)[1])))
    return ", ".join(f"{count} {cause.replace('_', ' ')}" for cause, count in counts.most_common())
