"""A campaign taken in hand: locked, its ledger open, brought up to date, ready to submit and to follow."""

from __future__ import annotations

import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import harness
from harness.errors import HarnessError, UserError
from harness.jobs import shell
from harness.jobs.attempts import Workshop
from harness.jobs.campaign import load_campaign, open_campaign, read_cluster
from harness.jobs.drive import Driver, Report, Stop
from harness.jobs.ledger import Ledger
from harness.jobs.local_registry import host_of
from harness.jobs.lock import CampaignLock, locked
from harness.jobs.modes import How, plan_batches, quota_of, throttle_of
from harness.jobs.render import Scripts, package_root
from harness.jobs.room import Room
from harness.jobs.site import Site
from harness.jobs.survey.facts import COMMANDS
from harness.jobs.watch import LOCAL_PACE, SHARED_PACE, Watcher
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.model.cluster import Cluster
from harness.model.job import JobState
from harness.model.ledger import LOOKED_FOR, damage_text
from harness.units import format_duration

#: jobs of a campaign queued at once where the user sets no limit
MOST_QUEUED = 1000
#: submissions a second: a server that many users share has more to do than ours
RATE_PER_S = 5.0
#: a status question or a dying harness may hold the lock for a moment
LOCK_PATIENCE_S = 3.0
#: a local job may have waited so long for its turn
ELSEWHERE_S = 3600.0


@contextmanager
def opened(
    layout: CampaignLayout,
    project_root: Path,
    report: Report,
    planned: tuple[Campaign, Cluster] | None = None,
    how: How = How(),  # noqa: B008  frozen
    retries: int = 0,
    stop: Stop | None = None,
    say: Callable[[str], None] = lambda _text: None,
) -> Iterator[Driver]:
    """The driver of a campaign, already reconciled with what happened since the last one.

    Args:
        planned: a fresh plan, to make or widen the campaign with; None: the campaign as it is on disk.
        how: how tasks become jobs, and how many at a time.

    Raises:
        LockError: another harness drives the campaign.
        UserError: there is no such campaign, it belongs to another cluster, or that cluster cannot be asked from here.
    """
    if planned is None:
        load_campaign(layout)
    _must_be_reachable(planned[1] if planned else read_cluster(layout.cluster))
    layout.root.mkdir(parents=True, exist_ok=True)
    with locked(layout.lock, patience_s=LOCK_PATIENCE_S) as lock, Ledger(layout.ledger, time.time) as ledger:
        campaign, cluster = _campaign(layout, planned)
        layout.stop.unlink(missing_ok=True)
        driver = _driver(_workshop(campaign, cluster, layout, project_root), ledger, lock, how, report)
        driver.retries, driver.stop, driver.say = retries, stop or driver.stop, say
        if driver.site.is_local:
            give_up_elsewhere(driver, socket.gethostname(), time.time())
        driver.reconcile()
        if ledger.damaged:
            print(f"harness: {damage_text(layout.ledger, ledger.damaged, LOOKED_FOR)}", file=sys.stderr)
        yield driver
        layout.stop.unlink(missing_ok=True)


def _must_be_reachable(cluster: Cluster) -> None:
    """Else nothing would ever be heard of its jobs."""
    if absent := [command for command in COMMANDS[cluster.scheduler] if shutil.which(command) is None]:
        raise UserError(
            f"not in PATH on {socket.gethostname()}: {', '.join(absent)}; {cluster.name} is asked from where its jobs "
            "are submitted: log in there, load the site's module, or extend PATH (`harness status` needs none of this)"
        )


def _workshop(campaign: Campaign, cluster: Cluster, layout: CampaignLayout, project_root: Path) -> Workshop:
    commit = git_commit(package_root())
    return Workshop(
        campaign,
        cluster,
        layout,
        Scripts(cluster, project_root).job,
        harness.__version__,
        commit,
        project_root=project_root,
    )


def _driver(workshop: Workshop, ledger: Ledger, lock: CampaignLock, how: How, report: Report) -> Driver:
    campaign, cluster = workshop.campaign, workshop.cluster
    site = Site(cluster, as_text=ledger.is_text_only, give_up_json=ledger.ask_as_text)
    pace = LOCAL_PACE if cluster.scheduler == "local" else SHARED_PACE
    quota = quota_of(cluster, how, [point.placement for point in campaign.points.values()])
    return Driver(
        workshop=workshop,
        site=site,
        ledger=ledger,
        watcher=Watcher(workshop, site, ledger, time.monotonic, pace),
        lock=lock,
        room=Room(site, ledger, time.monotonic, how.jobs or default_limit(cluster), quota),
        clock=time.monotonic,
        sleep=time.sleep,
        report=report,
        tick_s=pace.tick_s,
        batching=lambda tasks: plan_batches(campaign, cluster, tasks, how, _seed(campaign, ledger)).batches,
        throttle=throttle_of(cluster, how),
        spacing_s=1.0 / rate if (rate := rate_of(cluster, how)) else 0.0,
    )


def _seed(campaign: Campaign, ledger: Ledger) -> str:
    return f"{campaign.uid} {len(ledger.statuses)}"


def rate_of(cluster: Cluster, how: How) -> float | None:
    """Submissions a second; None: as fast as they are answered, on this machine alone."""
    return how.rate_per_s or (None if cluster.scheduler == "local" else RATE_PER_S)


def _campaign(layout: CampaignLayout, planned: tuple[Campaign, Cluster] | None) -> tuple[Campaign, Cluster]:
    if planned is not None:
        return open_campaign(layout, *planned), planned[1]
    return load_campaign(layout), read_cluster(layout.cluster)


def default_limit(cluster: Cluster) -> int:
    """One job at a time on this machine, for neighbours disturb a measurement."""
    return 1 if cluster.scheduler == "local" else MOST_QUEUED


def for_concurrency(cluster: Cluster, jobs: int | None) -> Cluster:
    """The cluster with its local jobs made exclusive, unless the user wants several at a time."""
    if cluster.scheduler != "local":
        return cluster
    directives = cluster.directives.model_copy(update={"exclusive": (jobs or 1) == 1})
    return cluster.model_copy(update={"directives": directives})


def give_up_elsewhere(driver: Driver, host: str, now_unix_s: float) -> None:
    """Local jobs under way on another host cannot be asked about from this one.

    They are lost once their walltime has long passed without evidence.

    Raises:
        HarnessError: for those that may still run there.
    """
    for key, status in list(driver.ledger.statuses.items()):
        there = host_of(status.job_id)
        if status.state.ended or there in ("", host) or driver.workshop.verdict(key) is not None:
            continue
        point = driver.workshop.campaign.points.get(key.point_id)
        limit_s = ELSEWHERE_S + (point.placement.walltime_s if point else 0)
        left_s = (status.submitted_unix_s or 0.0) + limit_s - now_unix_s
        if left_s > 0:
            raise HarnessError(
                f"a job of this campaign runs on {there}, and this is {host}: take it up there, "
                f"or in {format_duration(left_s)}, when it is counted as lost"
            )
        driver.ledger.state(key, JobState.LOST, f"it ran on {there}, which cannot be asked from {host}")


def git_commit(root: Path) -> str | None:
    """The commit of the checkout, with ``-dirty`` where files differ from it; None outside a checkout."""
    if not (root / ".git").exists():
        return None
    answer = shell.run(["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"])
    return answer.stdout.strip() or None if answer.returncode == 0 else None
