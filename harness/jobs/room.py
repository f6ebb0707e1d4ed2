"""Whether there is room for another job: within the campaign's own limit, and beside the user's other jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.jobs.interval import Interval
from harness.jobs.ledger import Ledger
from harness.jobs.site import Site
from harness.jobs.submission import Batch
from harness.model.ledger import AttemptKey, AttemptStatus

#: seconds between two looks at the user's other jobs
ASK_FIRST_S, ASK_MOST_S = 30.0, 300.0


@dataclass
class Room:
    """``limit``: jobs of this campaign queued or running at once. ``quota``: jobs of the user, this campaign's and all
    others; None: nobody counts, and the scheduler is not asked. ``clock`` is monotonic seconds."""

    site: Site
    ledger: Ledger
    clock: Callable[[], float]
    limit: int
    quota: int | None = None
    _others: int = 0
    _interval: Interval = field(default_factory=lambda: Interval(ASK_FIRST_S, ASK_MOST_S))

    def lacking(self, batch: Batch, throttle: int | None = None) -> str:
        """Why a batch must wait, in words; empty when it may be submitted now.

        An array counts each of its elements, and for ``limit`` those that its throttle lets run; where nothing is under
        way a batch that is larger than ``limit`` may go all the same.
        """
        jobs = self.jobs()
        at_once = min(batch.jobs, throttle or batch.jobs)
        if jobs and jobs + at_once > self.limit:
            return f"{self.limit} jobs of this campaign at a time"
        if self.quota is None:
            return ""
        others = self.others()
        if jobs + others + batch.jobs <= self.quota:
            return ""
        return f"{jobs} jobs of this campaign and {others} others of yours, {self.quota} in all; see --max-queued"

    def jobs(self) -> int:
        """This campaign's jobs that have not ended, elements of arrays one by one."""
        active = {job_of(key, status) for key, status in self.ledger.statuses.items() if not status.state.ended}
        return len(active)

    def is_empty(self) -> bool:
        """Whether the scheduler says that the user has no job there, this campaign's or another."""
        jobs = self.site.jobs()
        return jobs is not None and not any(job.state is None or not job.state.ended for job in jobs)

    def others(self) -> int:
        """The user's jobs that are not this campaign's; when the scheduler is silent, as many as it said last."""
        now = self.clock()
        if self._interval.is_due(now):
            ours = {status.job_name for status in self.ledger.statuses.values()}
            jobs = self.site.jobs()
            if jobs is not None:
                living = [job for job in jobs if job.state is None or not job.state.ended]
                self._others = sum(job.elements for job in living if job.job_name not in ours)
            self._interval.asked(now)
        return self._others


def job_of(key: AttemptKey, status: AttemptStatus) -> object:
    """What the attempts of one job have in common: a pack is one job, an array's elements are jobs of their own."""
    return status.group if status.group and status.index is None else key
