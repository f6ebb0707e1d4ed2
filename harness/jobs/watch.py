"""Following submitted jobs: evidence first, then the scheduler in one batched question at growing intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from harness.jobs.attempts import Workshop, fence, has_started
from harness.jobs.ledger import Ledger
from harness.jobs.site import Site
from harness.model.evidence import Verdict
from harness.model.job import JobState, Observation
from harness.model.ledger import AttemptKey

NEVER_QUEUED = "the submission never reached the scheduler"


@dataclass
class Interval:
    """The time between two questions: short after something happened, then growing up to ``most_s``."""

    first_s: float
    most_s: float
    factor: float = 1.5
    current_s: float = field(init=False)
    next_s: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.current_s = self.first_s

    def is_due(self, now: float) -> bool:
        return now >= self.next_s

    def asked(self, now: float) -> None:
        self.next_s = now + self.current_s
        self.current_s = min(self.current_s * self.factor, self.most_s)

    def restart(self, now: float) -> None:
        self.current_s = self.first_s
        self.next_s = min(self.next_s, now + self.first_s)


@dataclass(frozen=True)
class Pace:
    """How often to look (``tick_s``), how often to ask, and how long evidence may take to become visible."""

    tick_s: float
    ask_first_s: float
    ask_most_s: float
    grace_s: float


#: The local engine reports a job's end after its evidence lies on the same machine's file system.
LOCAL_PACE = Pace(tick_s=0.2, ask_first_s=2.0, ask_most_s=15.0, grace_s=0.0)
#: NFS clients may hide a new file for as long as a minute (acdirmax, nfs(5)).
SHARED_PACE = Pace(tick_s=2.0, ask_first_s=5.0, ask_most_s=60.0, grace_s=90.0)


class Watcher:
    """Moves a campaign's attempts on in the ledger. ``clock`` is monotonic seconds."""

    def __init__(self, workshop: Workshop, site: Site, ledger: Ledger, clock: Callable[[], float], pace: Pace):
        self._workshop, self._site, self._ledger, self._clock, self._pace = workshop, site, ledger, clock, pace
        self._interval = Interval(pace.ask_first_s, pace.ask_most_s)
        self._gone: dict[AttemptKey, float] = {}
        self._told: dict[AttemptKey, Observation] = {}

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

    def hurry(self) -> None:
        """Ask the scheduler soon: something was just submitted or cancelled."""
        self._interval.restart(self._clock())

    def revisit_lost(self) -> None:
        """Late evidence lifts what was given up for lost; what has never started is kept from ever starting."""
        for key, status in list(self._ledger.statuses.items()):
            if status.state is JobState.LOST and not self._weigh(key):
                fence(self._workshop.paths(key))

    def cancel(self, keys: list[AttemptKey]) -> list[str]:
        """Ask the scheduler to end these jobs; returns its complaints."""
        ids = {self._ledger.statuses[key].job_id for key in keys} - {""}
        self.hurry()
        return self._site.cancel(sorted(ids))

    def settle_unanswered(self) -> None:
        """Find out about submissions that were never answered, before anything new is submitted."""
        if keys := [key for key in self.active() if not self._ledger.statuses[key].job_id]:
            self._settle(keys)

    def _weigh(self, key: AttemptKey) -> bool:
        """Record what the evidence says; False while it says nothing."""
        told = self._told.get(key)
        verdict = self._workshop.verdict(key, told.state if told else None)
        if verdict is None:
            if not self._ledger.statuses[key].state.ended and has_started(self._workshop.paths(key)):
                self._ledger.state(key, JobState.RUNNING, "its script has started")
            return False
        if verdict.from_outside and (self._must_be_told(key) or self._may_lag(key, verdict)):
            return False
        native = told.native_state if told else ""
        self._ledger.state(key, verdict.state, explained(verdict, told), verdict.exit_status, native)
        return True

    def _must_be_told(self, key: AttemptKey) -> bool:
        """A job does not know who stopped it: the scheduler is asked, unless it does not know the job any more."""
        status = self._ledger.statuses[key]
        if status.state.ended or key in self._told or key in self._gone or not status.job_id:
            return False
        self._interval.restart(self._clock())
        return True

    def _may_lag(self, key: AttemptKey, verdict: Verdict) -> bool:
        """The launcher's success is here and a rank's is not: another node's file may take its time to be seen."""
        if self._ledger.statuses[key].state.ended or verdict.exit_status != 0:
            return False
        now = self._clock()
        return now - self._gone.get(key, now) < self._pace.grace_s

    def _ask(self) -> None:
        known = {s.job_id: key for key in self.active() if (s := self._ledger.statuses[key]).job_id}
        for job_id, observation in self._site.observe(list(known)).items():
            self._take(known[job_id], observation)
        self.settle_unanswered()

    def _take(self, key: AttemptKey, observation: Observation) -> None:
        state = observation.state
        if state is not None and not state.ended:
            self._gone.pop(key, None)
            self._ledger.state(key, state, observation.reason, native_state=observation.native_state)
            if observation.never_runnable:
                self._give_up(key, observation)
            return
        now = self._clock()
        since = self._gone.setdefault(key, now)
        if state is not None:
            self._told[key] = observation
        if self._weigh(key) or now - since < self._pace.grace_s:
            return
        verdict = without_evidence(observation)
        self._ledger.state(key, verdict.state, verdict.reason, verdict.exit_status, observation.native_state)

    def _give_up(self, key: AttemptKey, observation: Observation) -> None:
        self._site.cancel([observation.job_id])
        self._ledger.state(key, JobState.FAILED, f"can never run: {observation.reason}")

    def _settle(self, keys: list[AttemptKey]) -> None:
        found = self._site.find()
        if found is not None:
            for key in keys:
                self._settle_one(key, found)

    def _settle_one(self, key: AttemptKey, found: Mapping[str, Observation]) -> None:
        """By name, and only among living jobs: one that ended long ago may have had the same name."""
        job = found.get(self._workshop.job_name(key))
        if job is not None and job.state is not None and not job.state.ended:
            self._ledger.submitted(key, job.job_id)
            self._take(key, job)
        elif self._weigh(key):
            return
        elif fence(self._workshop.paths(key)):
            self._ledger.state(key, JobState.LOST, NEVER_QUEUED)
        else:
            self._take(key, Observation(job_id="", state=None))


def explained(verdict: Verdict, told: Observation | None) -> str:
    """The reason of a verdict, with the scheduler's word on a run that failed from outside."""
    if told is None or verdict.state is not JobState.FAILED or not verdict.from_outside:
        return verdict.reason
    return f"{verdict.reason}; the scheduler says {told.native_state}" + (f": {told.reason}" if told.reason else "")


def without_evidence(observation: Observation) -> Verdict:
    """The verdict on an ended job that left no exit record: whatever it is, it is no success."""
    if observation.state is None:
        return Verdict(JobState.LOST, "the scheduler does not know the job any more, and it left no exit record")
    if observation.state is JobState.SUCCEEDED:
        return Verdict(JobState.LOST, "the scheduler reports success, but the run left no exit record")
    reason = observation.reason or f"the scheduler says {observation.native_state}; there is no exit record"
    return Verdict(observation.state, reason, observation.exit_status)
