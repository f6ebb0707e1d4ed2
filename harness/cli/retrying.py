"""New attempts of a stored campaign's unsuccessful tasks."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rich.console import Console

from harness.cli import preflight
from harness.cli.campaign_run import Relay, Wishes, announce, announce_jobs, drive
from harness.cli.interrupts import orderly
from harness.cli.options import project_root
from harness.cli.outcome import Outcome, deciding
from harness.jobs.campaign import load_campaign, read_cluster
from harness.jobs.drive import Statuses, Stop, attempts_of
from harness.jobs.session import for_concurrency, opened
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign, Task
from harness.model.job import JobState


def retry_campaign(layout: CampaignLayout, states: Collection[JobState], wishes: Wishes, console: Console) -> Outcome:
    """Submit a new attempt of each task whose deciding attempt is in one of ``states``."""
    campaign = load_campaign(layout)
    cluster = for_concurrency(read_cluster(layout.cluster), wishes.how.jobs)
    relay, stop, planned = Relay(), Stop(), (campaign, cluster)
    root = project_root(Path.cwd())
    with orderly(stop), opened(layout, root, relay, planned, wishes.how, wishes.retries, stop) as driver:
        tasks = tasks_in(campaign, driver.ledger.statuses, states)
        preflight.check(cluster, [campaign.points[point_id] for point_id in dict.fromkeys(t.point_id for t in tasks)])
        console.print(announce(driver, campaign.tasks, tasks), soft_wrap=True)
        announce_jobs(driver, tasks, wishes.how, console)
        return drive(driver, tasks, tasks, relay, console, wishes.follow or driver.site.is_local)


def tasks_in(campaign: Campaign, statuses: Statuses, states: Collection[JobState]) -> list[Task]:
    """The tasks whose deciding attempt is in one of ``states``, in run order."""
    attempts = attempts_of(campaign.tasks, statuses)
    return [task for task in campaign.tasks if attempts[task] and deciding(attempts[task])[1].state in states]
