"""Ending a campaign's jobs, ourselves or through the harness that drives it."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from harness.cli.campaign_run import CANCEL_PATIENCE_S
from harness.cli.options import project_root
from harness.cli.outcome import Outcome, outcome_of
from harness.jobs.campaign import load_campaign
from harness.jobs.ledger import read_statuses
from harness.jobs.lock import LockError, read_holder
from harness.jobs.session import opened
from harness.layout import CampaignLayout

#: an asked harness may first have to wait for its scheduler's answer
PATIENCE_S = CANCEL_PATIENCE_S + 120.0


def cancel_campaign(layout: CampaignLayout, console: Console) -> Outcome:
    """Cancel all jobs that are queued or running, and wait until they have ended."""
    campaign = load_campaign(layout)
    deadline = time.monotonic() + PATIENCE_S
    asked = False
    while time.monotonic() < deadline:
        try:
            with opened(layout, project_root(Path.cwd()), lambda _key, _status: None) as driver:
                active = driver.watcher.active()
                if active:
                    console.print(f"cancelling {len(active)} jobs …")
                    driver.cancel_active(CANCEL_PATIENCE_S)
                break
        except LockError:
            if not asked:
                console.print(f"asking {read_holder(layout.lock)} to cancel its jobs and leave …", markup=False)
                layout.stop.touch()
                asked = True
            time.sleep(0.5)
    return outcome_of(campaign, layout, campaign.tasks, read_statuses(layout.ledger))
