"""Following a campaign without submitting anything, be it ours to drive or another harness's."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from rich.console import Console

from harness.cli.campaign_run import INTERRUPTED, Relay
from harness.cli.interrupts import orderly
from harness.cli.outcome import Outcome, outcome_of
from harness.cli.progress import RunProgress
from harness.jobs.campaign import load_campaign
from harness.jobs.drive import Driver, Stop
from harness.jobs.ledger import read_statuses
from harness.jobs.lock import LockError
from harness.jobs.session import opened
from harness.jobs.tasks import task_of
from harness.layout import CampaignLayout, project_root

TIMEOUT = "timeout"


def wait_for(layout: CampaignLayout, timeout_s: float | None, console: Console) -> tuple[Outcome, bool]:
    """The outcome when nothing is queued or running any more, and whether the time ran out before."""
    campaign, stop, say = load_campaign(layout), Stop(), partial(console.print, markup=False, soft_wrap=True)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    with orderly(stop):
        while not stop.wanted:
            if _is_late(deadline):
                stop.ask(TIMEOUT)
            try:
                relay = Relay()
                with opened(layout, project_root(Path.cwd()), relay, stop=stop, say=say) as driver:
                    _follow(driver, relay, console, deadline)
                    break
            except LockError:
                time.sleep(1.0)  # another harness drives, and records what we wait for
    damaged: list[int] = []
    outcome = outcome_of(campaign, layout, campaign.tasks, read_statuses(layout.ledger, damaged), damaged)
    outcome.interrupted = INTERRUPTED if stop.reason == "interrupt" else 0
    return outcome, stop.reason == TIMEOUT


def _is_late(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def _follow(driver: Driver, relay: Relay, console: Console, deadline: float | None) -> None:
    campaign, layout = driver.workshop.campaign, driver.workshop.layout
    with RunProgress(console, campaign, layout, {task_of(key) for key in driver.watcher.active()}) as progress:
        relay.target = progress
        while driver.watcher.active() and not driver.stop.wanted:
            driver.look()
            if _is_late(deadline):
                driver.stop.ask(TIMEOUT)
            driver.pause()
