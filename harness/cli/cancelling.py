"""Ending a campaign's jobs, ourselves or through the harness that drives it."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from rich.console import Console

from harness.cli.campaign_run import CANCEL_PATIENCE_S
from harness.cli.filters import chosen_points
from harness.cli.outcome import Outcome, outcome_of
from harness.cli.status_view import driver_text
from harness.jobs.campaign import load_campaign
from harness.jobs.drive import Driver
from harness.jobs.ledger import read_statuses
from harness.jobs.lock import LockError, read_holder
from harness.jobs.session import opened
from harness.jobs.tasks import Statuses
from harness.layout import CampaignLayout, project_root
from harness.model.job import JobState
from harness.model.ledger import AttemptKey

STATES = {"queued": (JobState.INTENDED, JobState.QUEUED), "running": (JobState.RUNNING,)}
#: an asked harness may first have to wait for its scheduler's answer
PATIENCE_S = CANCEL_PATIENCE_S + 120.0


def cancel_campaign(
    layout: CampaignLayout, console: Console, only: str | None = None, state: str | None = None
) -> tuple[Outcome, int]:
    """Cancel jobs that are queued or running, and wait until they have ended; also returns how many have not.

    Args:
        only: an expression on the axes of the points meant; None: all.
        state: ``queued`` or ``running``; None: both.

    Raises:
        LockError: another harness drives the campaign, and not all of its jobs are meant.
    """
    campaign = load_campaign(layout)
    points, states = chosen_points(campaign, only), STATES.get((state or "").lower())

    def meant(statuses: Statuses) -> list[AttemptKey]:
        active = [key for key, status in statuses.items() if not status.state.ended and key.point_id in points]
        return [key for key in active if states is None or statuses[key].state in states]

    say = partial(console.print, style="yellow", markup=False, soft_wrap=True)
    deadline = time.monotonic() + PATIENCE_S
    asked = False
    while time.monotonic() < deadline:
        try:
            with opened(layout, project_root(Path.cwd()), lambda _key, _status: None, say=say) as driver:
                _cancel(driver, meant(driver.ledger.statuses), console)
                break
        except LockError as error:
            if only or state:
                raise LockError(
                    f"{error}; only the harness itself, or an interrupted one's successor, cancels some of "
                    "its jobs: interrupt it first"
                ) from None
            if not asked:
                console.print(f"asking {read_holder(layout.lock)} to cancel its jobs and leave …", markup=False)
                layout.stop.touch()
                asked = True
            time.sleep(0.5)
    damaged: list[int] = []
    statuses = read_statuses(layout.ledger, damaged)
    driver_left = not (only or state) and driver_text(layout) != ""
    return outcome_of(campaign, layout, campaign.tasks, statuses, damaged), len(meant(statuses)) + driver_left


def _cancel(driver: Driver, keys: list[AttemptKey], console: Console) -> None:
    if keys:
        console.print(f"cancelling {len(keys)} runs …")
        driver.cancel_active(CANCEL_PATIENCE_S, keys)
