"""How a campaign stands, for those who only look: the ledger, the evidence that came since, the scheduler's word.

Nothing is written and no lock is taken, so looking never disturbs a harness that drives the campaign.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from harness.jobs.attempts import has_started, verdict_on
from harness.jobs.drive import Statuses
from harness.jobs.ledger import read_statuses
from harness.jobs.site import Site
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.model.job import JobState
from harness.model.ledger import AttemptKey, AttemptStatus, apply


def present(campaign: Campaign, layout: CampaignLayout, site: Site | None = None) -> dict[AttemptKey, AttemptStatus]:
    """The state of every attempt now; the scheduler is asked where ``site`` is given."""
    statuses = read_statuses(layout.ledger)
    for key in _active(statuses):
        statuses[key] = apply(statuses[key], _from_evidence(campaign, layout, key, statuses[key]))
    by_id = {statuses[key].job_id: key for key in _active(statuses) if statuses[key].job_id}
    if site is not None and by_id:
        for job_id, seen in site.observe(list(by_id)).items():
            if seen.state is not None and not seen.state.ended:
                statuses[by_id[job_id]] = apply(statuses[by_id[job_id]], _record(seen.state, seen.reason))
    return statuses


def _active(statuses: Statuses) -> list[AttemptKey]:
    return [key for key, status in statuses.items() if not status.state.ended]


def _from_evidence(
    campaign: Campaign, layout: CampaignLayout, key: AttemptKey, status: AttemptStatus
) -> Mapping[str, Any]:
    verdict = verdict_on(campaign, layout, key)
    if verdict is not None:
        return _record(verdict.state, verdict.reason, verdict.exit_status)
    started = has_started(layout.attempt(*key))
    return _record(JobState.RUNNING if started else status.state, status.reason)


def _record(state: JobState, reason: str, exit_status: int | None = None) -> dict[str, Any]:
    details = {"reason": reason, "exit_status": exit_status}
    return {"record": "state", "unix_s": time.time(), "state": state.value, **details}
