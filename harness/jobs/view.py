"""How a campaign stands, for those who only look: the ledger, the evidence that came since, the scheduler's word.

Nothing is written and no lock is taken, so looking never disturbs a harness that drives the campaign.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from harness.jobs.attempts import has_started, verdict_on
from harness.jobs.interval import Interval
from harness.jobs.ledger import read_statuses
from harness.jobs.packs import WAITS
from harness.jobs.tasks import Statuses
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.model.job import JobState, Observation
from harness.model.ledger import AttemptKey, AttemptStatus, apply

#: seconds between two questions at most, however long somebody looks on
ASK_MOST_S = 60.0


class Asking(Protocol):
    """The one question that a look asks. ``silence``: what came instead of an answer, the last time."""

    @property
    def silence(self) -> str: ...

    def observe(self, job_ids: Sequence[str]) -> dict[str, Observation]: ...


class Late:
    """A site that is made when its first question comes: to most looks nothing is under way."""

    def __init__(self, make: Callable[[], Asking]):
        self._make = make
        self._site: Asking | None = None

    def observe(self, job_ids: Sequence[str]) -> dict[str, Observation]:
        if self._site is None:
            self._site = self._make()
        return self._site.observe(job_ids)

    @property
    def silence(self) -> str:
        return self._site.silence if self._site else ""


class Rarely:
    """A site for those who look again and again: asked at growing intervals, its last answer repeated in between."""

    def __init__(self, site: Asking, clock: Callable[[], float], first_s: float, most_s: float = ASK_MOST_S):
        self._site, self._clock = site, clock
        self._interval = Interval(first_s, most_s)
        self._seen: dict[str, Observation] = {}

    def observe(self, job_ids: Sequence[str]) -> dict[str, Observation]:
        now = self._clock()
        if self._interval.is_due(now):
            before, self._seen = self._seen, self._site.observe(job_ids)
            if self._seen != before:
                self._interval.restart(now)
            self._interval.asked(now)
        return self._seen

    @property
    def silence(self) -> str:
        return self._site.silence


def present(
    campaign: Campaign, layout: CampaignLayout, site: Asking | None = None, damaged: list[int] | None = None
) -> dict[AttemptKey, AttemptStatus]:
    """The state of every attempt now; the scheduler is asked where ``site`` is given.

    Args:
        damaged: where given, the numbers of damaged lines of the ledger are added to it.
    """
    statuses = read_statuses(layout.ledger, damaged)
    for key in _active(statuses):
        statuses[key] = apply(statuses[key], _from_evidence(campaign, layout, key, statuses[key]))
    asked = {statuses[key].job_id for key in _active(statuses)} - {""}
    seen = site.observe(sorted(asked)) if site is not None and asked else {}
    for key in _active(statuses):
        if (observation := seen.get(statuses[key].job_id)) is not None:
            statuses[key] = _seen(statuses[key], observation)
    return statuses


def _seen(status: AttemptStatus, observation: Observation) -> AttemptStatus:
    """The status with the scheduler's word on a job under way: why it waits is worth showing each time.

    That a pack runs says nothing of the attempts in it that have not begun.
    """
    if observation.state is None or observation.state.ended or status.state is JobState.RUNNING:
        return status
    is_in_pack = bool(status.group) and status.index is None
    if is_in_pack and observation.state is JobState.RUNNING:
        return replace(apply(status, _record(JobState.QUEUED, WAITS)), reason=WAITS)
    moved = apply(status, _record(observation.state, observation.reason))
    return replace(moved, reason=observation.reason, native_state=observation.native_state)


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
