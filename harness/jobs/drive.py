"""Driving a campaign: submit what is missing, never more at a time than allowed, and follow it to its end."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from harness.errors import HarnessError
from harness.jobs.attempts import Workshop, fence
from harness.jobs.causes import NEVER_BEGAN, NEVER_QUEUED, UNTOLD
from harness.jobs.group_traces import group_of
from harness.jobs.ledger import Ledger
from harness.jobs.lock import CampaignLock
from harness.jobs.room import Room
from harness.jobs.schedulers.interface import Submitted
from harness.jobs.site import Site
from harness.jobs.submission import Batch, Submission, prepare
from harness.jobs.tasks import task_of, withheld
from harness.jobs.waiting import Waiting
from harness.jobs.watch import Watcher
from harness.model.campaign import Task
from harness.model.job import JobState
from harness.model.ledger import NOTHING_KNOWN, AttemptKey, AttemptStatus

#: refusals one after another after which no further job is offered: the next thousand would be refused alike
REFUSALS_IN_A_ROW = 3
BUSY_WAIT_S = 30.0
RESUBMISSIONS = 3
#: what to do about a submission that is refused for too many jobs though there are none
NEVER_FITS = (
    "none of your jobs is there, so waiting does not help: give the queue its max_queued_jobs in the cluster's file, "
    "which makes arrays smaller, or name the account that may submit"
)
SLICE_S = 0.2

Report = Callable[[AttemptKey, AttemptStatus], None]


@dataclass
class Stop:
    """Submit nothing more, and leave the loop. ``reason``: interrupt (a signal) or request (``harness cancel``)."""

    wanted: bool = False
    reason: str = ""

    def ask(self, reason: str) -> None:
        self.wanted, self.reason = True, self.reason or reason


def one_by_one(tasks: Sequence[Task]) -> list[Batch]:
    return [Batch("single", (task,)) for task in tasks]


@dataclass
class Driver:
    """``batching`` makes tasks into jobs; ``throttle`` elements of an array run at once; ``spacing_s`` lies between two
    submissions. ``clock`` is monotonic seconds."""

    workshop: Workshop
    site: Site
    ledger: Ledger
    watcher: Watcher
    lock: CampaignLock
    room: Room
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    report: Report
    tick_s: float
    batching: Callable[[Sequence[Task]], Sequence[Batch]] = one_by_one
    throttle: int | None = None
    spacing_s: float = 0.0
    retries: int = 0
    stop: Stop = field(default_factory=Stop)
    _again: list[Task] = field(default_factory=list)
    _batches: deque[Batch] = field(default_factory=deque)
    _put_off: Submission | None = None
    _tries: Counter[Task] = field(default_factory=Counter)
    _lost_submissions: Counter[Task] = field(default_factory=Counter)
    say: Callable[[str], None] = print
    _refusals: int = 0
    _refused_alone: int = 0
    _not_before: float = 0.0

    def __post_init__(self) -> None:
        scheduler = self.workshop.cluster.scheduler
        self._waiting = Waiting(
            self.site, self.ledger, self.watcher, self.clock, lambda text: self.say(text), scheduler
        )
        self._tasks = frozenset(self.workshop.campaign.tasks)

    def reconcile(self) -> None:
        """Bring the ledger up to date with what happened while no harness was looking."""
        self.adopt_strays()
        self.watcher.revisit_lost()
        self.watcher.settle_unanswered()
        self.look()
        self._again.clear()  # what is missing is for the caller to say
        for key in withheld(self.workshop.campaign.tasks, self.ledger.statuses):
            self.say(self.ledger.statuses[key].reason)

    def adopt_strays(self) -> None:
        """Attempt directories that the ledger does not know (it, or a line of it, was lost, or we died before the
        intent)."""
        known = self.ledger.statuses
        for group in self.workshop.groups_on_disk():
            script = str(self.workshop.layout.group(group.name).script)
            unknown = [key for key in group.attempts if known.get(key, NOTHING_KNOWN).lacks_intent]
            if any(self.workshop.paths(key).root.is_dir() for key in unknown):
                self.ledger.intent(group.attempts, group.job_name, script, group.name, group.kind == "array")
        for key in self.workshop.on_disk():
            if known.get(key, NOTHING_KNOWN).lacks_intent:
                self._adopt(key)

    def _adopt(self, key: AttemptKey) -> None:
        """An attempt that no group on disk knows to be its own."""
        paths = self.workshop.paths(key)
        if (name := group_of(paths)) is None and self._may_run_unseen(key):
            why = f"{UNTOLD}: {paths.script} is not there or not what the harness wrote"
            self.ledger.state(key, JobState.LOST, f"{why}; it may still run, so only `harness retry` submits it again")
            return
        job_name = self.workshop.group_job_name(name) if name else self.workshop.job_name(key)
        self.ledger.intent([key], job_name, str(paths.script), name or "")

    def _may_run_unseen(self, key: AttemptKey) -> bool:
        """Whether an attempt may go on in a job of which the id is not known, nor the name where others share it."""
        has_id = bool(self.ledger.statuses.get(key, NOTHING_KNOWN).job_id)
        return not has_id and not fence(self.workshop.paths(key)) and self.workshop.verdict(key) is None

    def run(self, tasks: Sequence[Task]) -> None:
        """Submit these tasks and follow everything to its end, or until ``stop``."""
        self._again.extend(tasks)
        while not self.stop.wanted and (self.pending or self.watcher.active()):
            self.look()
            self.submit_some()
            if self.pending or self.watcher.active():
                self.pause()

    def submit_all(self, tasks: Sequence[Task]) -> None:
        """Submit these tasks without following them; waits only where the scheduler or the limit has no room."""
        self._again.extend(tasks)
        while self.pending and not self.stop.wanted:
            self.submit_some()
            if self.pending:
                self.look()
                self.pause()

    @property
    def pending(self) -> bool:
        """Whether there is something still to submit."""
        return bool(self._again or self._batches or self._put_off)

    def submit_some(self) -> None:
        """Submit as many pending batches as there is room for."""
        self._batches.extend(self.batching(self._again))
        self._again.clear()
        while self.pending and not self.stop.wanted and self.clock() >= self._not_before:
            batch = self._put_off.batch if self._put_off else self._batches[0]
            if lacking := self.room.lacking(batch, self.throttle):
                self._waiting.for_room(lacking)
                return
            self.lock.hold()
            self._submit(self._put_off or self._prepare(self._batches.popleft()))
            self.watcher.hurry()
            self._space()

    def look(self) -> None:
        """Follow what is active, report what moved, and take up again what is worth another try."""
        self.lock.hold()
        if self.workshop.layout.stop.exists():
            self.stop.ask("request")
        before = dict(self.ledger.statuses)
        self.watcher.look()
        for key, status in self.ledger.statuses.items():
            if before.get(key) != status:
                self.report(key, status)
                self._reconsider(key, status)
        self._waiting.look()

    def cancel_active(self, patience_s: float, keys: Collection[AttemptKey] | None = None) -> None:
        """End the jobs of these attempts (None: all of the campaign) and wait for their evidence, but not for ever.

        What the scheduler complains of, and which jobs go on all the same, is said at once.
        """
        chosen = set(self.watcher.active() if keys is None else keys)
        ending = chosen - self.watcher.going_on(chosen)
        for complaint in self.watcher.cancel(chosen):
            self.ledger.note(f"cancellation: {complaint}")
            self.say(complaint)
        deadline = self.clock() + patience_s
        while ending & set(self.watcher.active()) and self.clock() < deadline:
            self.sleep(self.tick_s)
            self.watcher.hurry()
            self.look()

    def pause(self) -> None:
        """One tick, cut short when a stop is asked for."""
        end = self.clock() + self.tick_s
        while not self.stop.wanted and (left := end - self.clock()) > 0:
            self.sleep(min(left, SLICE_S))

    def _space(self) -> None:
        """Wait before the next submission, so that they do not come faster than wished."""
        end = self.clock() + self.spacing_s
        while self.pending and not self.stop.wanted and (left := end - self.clock()) > 0:
            self.sleep(min(left, SLICE_S))

    def _prepare(self, batch: Batch) -> Submission:
        known, last_group = self.ledger.last, self.ledger.last_group
        return prepare(self.workshop, batch, known, self.throttle, self.lock.hold, last_group)

    def _submit(self, job: Submission) -> None:
        self._put_off = None
        self.ledger.intent(job.keys, job.job_name, str(job.script), job.group, job.batch.kind == "array")
        answer = self.site.submit(str(job.script), job.job_name)
        if answer.outcome == "accepted":
            self._refusals = self._refused_alone = 0
            self.ledger.submitted(job.job_ids(self.site, answer.job_id))
        elif answer.outcome == "refused":
            never = self._never_fits(answer)
            message = f"{answer.message}; {NEVER_FITS}" if never else answer.message
            self.ledger.refused(job.keys, message)
            self._refused(job, message, answer.retryable and not never)
        else:
            self.ledger.note(f"no clear answer to the submission of {job.job_name}: {answer.message}")
            self._waiting.unclear(answer.message)
            self._not_before = self.clock() + BUSY_WAIT_S
        for key in job.keys:
            self.report(key, self.ledger.statuses[key])

    def _never_fits(self, answer: Submitted) -> bool:
        """Whether it was refused for the number of the user's jobs twice in a row though there is none: once may be
        a job that has only just ended."""
        is_alone = answer.by_count and self.room.is_empty()
        self._refused_alone = self._refused_alone + 1 if is_alone else 0
        return self._refused_alone > 1

    def _refused(self, job: Submission, message: str, retryable: bool) -> None:
        if retryable:
            self._put_off = job
            self._waiting.refused(message, BUSY_WAIT_S)
            self._not_before = self.clock() + BUSY_WAIT_S
            return
        self._refusals += 1
        if self._refusals >= REFUSALS_IN_A_ROW and self._batches:
            left = sum(batch.jobs for batch in self._batches)
            self._batches.clear()
            raise HarnessError(f"{REFUSALS_IN_A_ROW} jobs in a row were refused, {left} were not offered: {message}")

    def _reconsider(self, key: AttemptKey, status: AttemptStatus) -> None:
        task = task_of(key)
        if task not in self._tasks:
            return  # a pack's own canary
        if status.reason in (NEVER_QUEUED, NEVER_BEGAN):
            self._lost_submissions[task] += 1
            if self._lost_submissions[task] <= RESUBMISSIONS:
                self._again.append(task)
        elif status.state in (JobState.FAILED, JobState.LOST, JobState.TIMED_OUT) and not status.refused:
            self._tries[task] += 1
            if self._tries[task] <= self.retries:
                self._again.append(task)
