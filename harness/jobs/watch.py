"""Following submitted jobs: evidence first, then the scheduler in one batched question at growing intervals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from harness.jobs.attempts import CLAIMED_CODE, Workshop, fence, has_started
from harness.jobs.causes import (
    NEVER_BEGAN,
    NEVER_QUEUED,
    NEVER_RUNNABLE,
    NO_RECORD,
    REQUEUED,
    is_unwritable,
    names_cause,
)
from harness.jobs.group_traces import is_group_name
from harness.jobs.interval import Interval
from harness.jobs.ledger import Ledger
from harness.jobs.packs import Packs
from harness.jobs.site import Site
from harness.model.evidence import Verdict
from harness.model.job import JobState, Observation
from harness.model.ledger import AttemptKey, AttemptStatus


@dataclass(frozen=True)
class Pace:
    """How often to look (``tick_s``), how often to ask, and how long evidence may take to become visible."""

    tick_s: float
    ask_first_s: float
    ask_most_s: float
    grace_s: float


#: The local engine reports a job's end after its evidence lies on the same machine's file system.
LOCAL_PACE = Pace(tick_s=0.2, ask_first_s=1.0, ask_most_s=2.0, grace_s=0.0)
#: NFS clients may hide a new file for as long as a minute (acdirmax, nfs(5)).
SHARED_PACE = Pace(tick_s=2.0, ask_first_s=5.0, ask_most_s=60.0, grace_s=90.0)


class Watcher:
    """Moves a campaign's attempts on in the ledger. ``clock`` is monotonic seconds."""

    def __init__(self, workshop: Workshop, site: Site, ledger: Ledger, clock: Callable[[], float], pace: Pace):
        self._workshop, self._site, self._ledger, self._clock, self._pace = workshop, site, ledger, clock, pace
        self._interval = Interval(pace.ask_first_s, pace.ask_most_s)
        self._gone: dict[AttemptKey, float] = {}
        self._told: dict[AttemptKey, Observation] = {}
        #: since when the scheduler says that the job of a run that has begun waits
        self._requeued: dict[AttemptKey, float] = {}
        self._cancelled: set[AttemptKey] = set()
        self._seen: dict[AttemptKey, Observation] = {}
        self._packs = Packs(workshop, ledger)

    def active(self) -> list[AttemptKey]:
        """Attempts that have not ended."""
        return [key for key, status in self._ledger.statuses.items() if not status.state.ended]

    def look(self) -> None:
        """One look at the evidence and, when it is time, one question to the scheduler."""
        before = dict(self._ledger.statuses)
        for key in self.active():
            self._weigh(key)
        now = self._clock()
        if self._interval.is_due(now) and self.active():
            self._ask()
            self._interval.asked(self._clock())
        if self._ledger.statuses != before:
            self._interval.restart(self._clock())

    def waiting(self) -> list[AttemptStatus]:
        """Attempts that wait, with what the scheduler said last of why: the ledger has its first word alone."""
        statuses = {key: self._ledger.statuses[key] for key in self.active() if key in self._seen}
        return [
            replace(status, reason=self._seen[key].reason, native_state=self._seen[key].native_state)
            for key, status in statuses.items()
            if status.state is JobState.QUEUED
        ]

    def hurry(self) -> None:
        """Ask the scheduler soon: something was just submitted or cancelled."""
        self._interval.restart(self._clock())

    def revisit_lost(self) -> None:
        """Late evidence lifts what was given up for lost; what has never started is kept from ever starting."""
        for key, status in list(self._ledger.statuses.items()):
            if status.state is JobState.LOST and not self._weigh(key):
                fence(self._workshop.paths(key))

    def going_on(self, keys: Collection[AttemptKey]) -> set[AttemptKey]:
        """Those among ``keys`` that cannot be cancelled without others: they run in a pack that is to go on."""
        chosen = set(keys)
        return {key for key in keys if self._packs.has_others(key, chosen) and has_started(self._workshop.paths(key))}

    def cancel(self, keys: Collection[AttemptKey]) -> list[str]:
        """Ask the scheduler to end the jobs of these attempts; returns its complaints, and which go on all the same.

        Of a pack that is to go on, attempts that have not begun are kept from beginning.
        """
        chosen, going_on = set(keys), []
        for key in keys:
            if self._packs.has_others(key, chosen):
                chosen.discard(key)
                if not self._keep_out(key, JobState.CANCELLED, "taken out of its pack"):
                    going_on.append(
                        f"{self._workshop.paths(key).root} goes on to its end: its pack has others behind it"
                    )
        self.hurry()
        complaints = self._site.cancel(self._job_ids(chosen))
        self._cancelled |= chosen
        return [*complaints, *going_on]

    def _job_ids(self, keys: Collection[AttemptKey]) -> list[str]:
        """Ids to cancel: an array's own where all its living elements are meant, one by one otherwise."""
        left_out = {self._ledger.statuses[key].group for key in self.active() if key not in keys}
        statuses = [status for key in keys if (status := self._ledger.statuses[key]).job_id]
        return sorted(
            {
                self._site.array_id(status.job_id) if status.group and status.group not in left_out else status.job_id
                for status in statuses
            }
        )

    def _keep_out(self, key: AttemptKey, state: JobState, reason: str) -> bool:
        """Keep an attempt from ever starting; False when it has started."""
        if not fence(self._workshop.paths(key)):
            return False
        self._ledger.state(key, state, reason)
        return True

    def settle_unanswered(self) -> None:
        """Find out about submissions that were never answered, before anything new is submitted."""
        if keys := [key for key in self.active() if not self._ledger.statuses[key].job_id]:
            self._settle(keys)

    def _weigh(self, key: AttemptKey) -> bool:
        """Record what the evidence says; False while it says nothing."""
        told = self._packs.what_ended(key, self._told.get(key))
        verdict = self._workshop.verdict(key, told.state if told else None)
        if verdict is None:
            if not self._ledger.statuses[key].state.ended and has_started(self._workshop.paths(key)):
                self._ledger.state(key, JobState.RUNNING, "its script has started")
            return False
        if verdict.state is JobState.CANCELLED and self._packs.has_moved_on(key):
            # nobody ends one run of a pack alone: it was taken back as a whole, and begun again
            reason = f"{verdict.reason}; {REQUEUED}, and went on behind it"
            verdict = verdict._replace(state=JobState.FAILED, reason=reason)
        if self._may_be_explained(key, verdict) and self._must_be_told(key):
            return False
        if verdict.from_outside and self._may_lag(key, verdict):
            return False
        native = told.native_state if told else ""
        self._ledger.state(key, verdict.state, explained(verdict, told), verdict.exit_status, native)
        return True

    def _may_be_explained(self, key: AttemptKey, verdict: Verdict) -> bool:
        """Whether the scheduler may know more of an end than the run does. A failure that a run reports itself may
        come of a process that was killed for the job's memory; of one run in a pack, and here, nobody knows more."""
        is_alone = not self._site.is_local and not self._packs.holds(key)
        return verdict.from_outside or (verdict.state is JobState.FAILED and is_alone)

    def _must_be_told(self, key: AttemptKey) -> bool:
        """A job does not know who stopped it: the scheduler is asked, unless it does not know the job any more."""
        status = self._ledger.statuses[key]
        if status.state.ended or key in self._told or key in self._gone or not status.job_id:
            return False
        if self._packs.has_moved_on(key):
            return False  # it was this run alone that ended, not its job
        self._interval.restart(self._clock())
        return True

    def _may_lag(self, key: AttemptKey, verdict: Verdict) -> bool:
        """The launcher's success is here and a rank's is not: another node's file may take its time to be seen."""
        if self._ledger.statuses[key].state.ended or verdict.exit_status != 0:
            return False
        now = self._clock()
        return now - self._gone.get(key, now) < self._pace.grace_s

    def _ask(self) -> None:
        known = self._by_job_id()
        observations = self._site.observe(list(known))
        for job_id, observation in observations.items():
            for key in known[job_id]:
                self._take(key, observation)
        hopeless = {key for job_id, seen in observations.items() if seen.never_runnable for key in known[job_id]}
        self._give_up(hopeless & set(self.active()), observations)
        self.settle_unanswered()

    def _by_job_id(self) -> dict[str, list[AttemptKey]]:
        """The attempts under way by the job that each is in: several share a pack."""
        known: dict[str, list[AttemptKey]] = {}
        for key in self.active():
            if job_id := self._ledger.statuses[key].job_id:
                known.setdefault(job_id, []).append(key)
        return known

    def _take(self, key: AttemptKey, observation: Observation) -> None:
        observation = self._packs.of_attempt(key, observation)
        if observation.if_unbegun and has_started(self._workshop.paths(key)):
            observation = Observation(job_id=observation.job_id, state=None)
        if self._was_requeued(key, observation):
            if self._clock() - self._requeued.setdefault(key, self._clock()) >= self._pace.grace_s:
                self._give_back(key, observation)
            return
        self._requeued.pop(key, None)
        state = observation.state
        if state is not None and not state.ended:
            self._gone.pop(key, None)
            self._seen[key] = observation
            self._ledger.state(key, state, observation.reason, native_state=observation.native_state)
            return
        now = self._clock()
        since = self._gone.setdefault(key, now)
        if state is not None:
            self._told[key] = observation
        if self._weigh(key):
            return
        # whose claim we can make has no evidence that might still come; a job that is merely unknown may be
        is_over = (state is not None or key in self._cancelled) and fence(self._workshop.paths(key))
        if not is_over and now - since < self._pace.grace_s:
            return
        if is_over and state is None:
            self._ledger.state(key, JobState.CANCELLED, "cancelled before it began")
            return
        verdict = without_evidence(observation)
        if self._packs.holds(key) and not is_unwritable(verdict.reason) and self._never_began(key, observation):
            return
        self._ledger.state(key, verdict.state, verdict.reason, verdict.exit_status, observation.native_state)

    def _was_requeued(self, key: AttemptKey, observation: Observation) -> bool:
        """Whether the scheduler has taken the job back of a run that has begun; begun once more, it would only find its
        claim. The claim alone does not tell: an answer may be some moments old."""
        if observation.state is not JobState.QUEUED or not has_started(self._workshop.paths(key)):
            return False
        seen = self._seen.get(key)
        return (seen is not None and seen.state is JobState.RUNNING) or self._workshop.verdict(key) is not None

    def _give_back(self, key: AttemptKey, observation: Observation) -> None:
        """End the attempt whose job was requeued, and the job with it; a pack goes on with the runs not begun yet."""
        job_ids = [] if self._packs.holds(key) else self._job_ids({key})
        reason = f"{REQUEUED} ({observation.reason})" if observation.reason else REQUEUED
        told = observation.model_copy(update={"state": JobState.FAILED, "reason": reason})
        self._told[key], self._gone[key] = told, self._requeued[key]
        self._site.cancel(job_ids)
        if not self._weigh(key):
            verdict = without_evidence(told)
            self._ledger.state(key, verdict.state, verdict.reason, native_state=observation.native_state)

    def _never_began(self, key: AttemptKey, observation: Observation) -> bool:
        """An attempt whose pack ended before its turn: nothing was measured and nothing failed."""
        cancelled = observation.state is JobState.CANCELLED
        reason = "its pack was cancelled before its turn" if cancelled else NEVER_BEGAN
        return self._keep_out(key, JobState.CANCELLED if cancelled else JobState.LOST, reason)

    def _give_up(self, keys: Collection[AttemptKey], observations: Mapping[str, Observation]) -> None:
        self._site.cancel(self._job_ids(keys))
        for key in keys:
            reason = observations[self._ledger.statuses[key].job_id].reason
            self._ledger.state(key, JobState.FAILED, f"{NEVER_RUNNABLE}: {reason}")

    def _settle(self, keys: list[AttemptKey]) -> None:
        jobs = self._site.jobs()
        if jobs is not None:
            living = {job.job_name: job for job in jobs if job.state is not None and not job.state.ended}
            for key in keys:
                self._settle_one(key, living)

    def _settle_one(self, key: AttemptKey, living: Mapping[str, Observation]) -> None:
        """By name, and only among living jobs: one that ended long ago may have had the same name."""
        status = self._ledger.statuses[key]
        if (job := living.get(status.job_name) or self._of_group(status.group, living)) is not None:
            if self._packs.is_nameless(key):
                self._gone.pop(key, None)
                return
            job_id = job.job_id
            if status.index is not None:
                job_id = self._site.element_id(self._site.array_id(job_id), status.index)
            self._ledger.submitted({key: job_id})
            if status.index is None:
                self._take(key, job)
        elif self._weigh(key):
            return
        elif fence(self._workshop.paths(key)):
            self._ledger.state(key, JobState.LOST, NEVER_QUEUED)
        else:
            self._take(key, Observation(job_id="", state=None))

    def _of_group(self, group: str, living: Mapping[str, Observation]) -> Observation | None:
        """A living job of the group's own name: the one in group.json may be damaged."""
        return living.get(self._workshop.group_job_name(group)) if is_group_name(group) else None


def explained(verdict: Verdict, told: Observation | None) -> str:
    """The reason of a verdict, with the scheduler's word on a run that failed from outside, or where it tells more."""
    if told is None or verdict.state is not JobState.FAILED:
        return verdict.reason
    if not verdict.from_outside and not names_cause(f"{told.native_state} {told.reason}"):
        return verdict.reason
    again = f" with exit status {CLAIMED_CODE}" if told.exit_status == CLAIMED_CODE else ""
    why = f": {told.reason}" if told.reason else ""
    return f"{verdict.reason}; the scheduler says {told.native_state}{again}{why}"


def without_evidence(observation: Observation) -> Verdict:
    """The verdict on an ended job that left no exit record: whatever it is, it is no success."""
    if observation.state is None:
        reason = "the scheduler does not know the job any more, and it left no exit record"
        return Verdict(JobState.LOST, reason + (f"; {observation.reason}" if observation.reason else ""))
    if observation.state is JobState.SUCCEEDED:
        return Verdict(JobState.LOST, "the scheduler reports success, but the run left no exit record")
    status = f" with exit status {observation.exit_status}" if observation.exit_status else ""
    reason = f"the scheduler says {observation.native_state}{status}; {NO_RECORD}"
    reason += f"; {observation.reason}" if observation.reason else ""
    return Verdict(observation.state, reason, observation.exit_status)
