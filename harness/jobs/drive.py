"""Driving a campaign: submit what is missing, never more at a time than allowed, and follow it to its end."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.errors import HarnessError
from harness.jobs.attempts import Workshop
from harness.jobs.ledger import Ledger
from harness.jobs.lock import CampaignLock
from harness.jobs.site import Site
from harness.jobs.watch import NEVER_QUEUED, Watcher
from harness.model.campaign import Task
from harness.model.job import JobState
from harness.model.ledger import AttemptKey, AttemptStatus

#: refusals one after another after which no further job is offered: the next thousand would be refused alike
REFUSALS_IN_A_ROW = 3
BUSY_WAIT_S = 30.0
RESUBMISSIONS = 3
SLICE_S = 0.2

Statuses = Mapping[AttemptKey, AttemptStatus]
Report = Callable[[AttemptKey, AttemptStatus], None]


def task_of(key: AttemptKey) -> Task:
    return Task(point_id=key.point_id, repeat=key.repeat)


def attempts_of(tasks: Iterable[Task], statuses: Statuses) -> dict[Task, list[tuple[AttemptKey, AttemptStatus]]]:
    """The attempts of each task, in their order."""
    found: dict[Task, list[tuple[AttemptKey, AttemptStatus]]] = {task: [] for task in tasks}
    for key, status in sorted(statuses.items()):
        if task_of(key) in found:
            found[task_of(key)].append((key, status))
    return found


def missing_tasks(tasks: Sequence[Task], statuses: Statuses, fresh: bool = False) -> list[Task]:
    """Tasks without a successful or living attempt, in run order; ``fresh`` counts no success."""
    attempts = attempts_of(tasks, statuses)
    return [task for task in tasks if not any(_counts(status, fresh) for _, status in attempts[task])]


def _counts(status: AttemptStatus, fresh: bool) -> bool:
    return not status.state.ended or (status.state is JobState.SUCCEEDED and not fresh)


@dataclass
class Stop:
    """Submit nothing more, and leave the loop. ``reason``: interrupt (a signal) or request (``harness cancel``)."""

    wanted: bool = False
    reason: str = ""

    def ask(self, reason: str) -> None:
        self.wanted, self.reason = True, self.reason or reason


@dataclass
class Driver:
    """``limit`` is the number of jobs that may be queued or running at once. ``clock`` is monotonic seconds."""

    workshop: Workshop
    site: Site
    ledger: Ledger
    watcher: Watcher
    lock: CampaignLock
    limit: int
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    report: Report
    tick_s: float
    retries: int = 0
    stop: Stop = field(default_factory=Stop)
    _pending: deque[Task] = field(default_factory=deque)
    _tries: Counter[Task] = field(default_factory=Counter)
    _lost_submissions: Counter[Task] = field(default_factory=Counter)
    _refusals: int = 0
    _not_before: float = 0.0

    def reconcile(self) -> None:
        """Bring the ledger up to date with what happened while no harness was looking."""
        self.adopt_strays()
        self.watcher.revisit_lost()
        self.watcher.settle_unanswered()
        self.look()

    def adopt_strays(self) -> None:
        """Attempt directories that the ledger does not know (it was lost, or we died before the intent)."""
        for key in self.workshop.on_disk():
            if key not in self.ledger.statuses:
                script = str(self.workshop.paths(key).script)
                self.ledger.intent(key, self.workshop.job_name(key), script)

    def run(self, tasks: Sequence[Task]) -> None:
        """Submit these tasks and follow everything to its end, or until ``stop``."""
        self._pending.extend(tasks)
        while not self.stop.wanted and (self._pending or self.watcher.active()):
            self.look()
            self.submit_some()
            if self._pending or self.watcher.active():
                self.pause()

    def submit_all(self, tasks: Sequence[Task]) -> None:
        """Submit these tasks without following them; waits only where the scheduler or the limit has no room."""
        self._pending.extend(tasks)
        while self._pending and not self.stop.wanted:
            self.submit_some()
            if self._pending:
                self.look()
                self.pause()

    def submit_some(self) -> None:
        """Submit as many pending tasks as there is room for."""
        while self._pending and not self.stop.wanted and self.clock() >= self._not_before:
            if len(self.watcher.active()) >= self.limit:
                return
            self.lock.hold()
            self._submit(self._pending.popleft())
            self.watcher.hurry()

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

    def cancel_active(self, patience_s: float) -> None:
        """End all jobs of the campaign and wait for their evidence, but not for ever."""
        for complaint in self.watcher.cancel(self.watcher.active()):
            self.ledger.note(f"cancellation: {complaint}")
        deadline = self.clock() + patience_s
        while self.watcher.active() and self.clock() < deadline:
            self.sleep(self.tick_s)
            self.watcher.hurry()
            self.look()

    def pause(self) -> None:
        """One tick, cut short when a stop is asked for."""
        end = self.clock() + self.tick_s
        while not self.stop.wanted and (left := end - self.clock()) > 0:
            self.sleep(min(left, SLICE_S))

    def _submit(self, task: Task) -> None:
        number = self._next_attempt(task)
        key, paths, spec = self.workshop.prepare(task, number)
        self.ledger.intent(key, spec.job_name, str(paths.script))
        answer = self.site.submit(str(paths.script), spec.job_name)
        if answer.outcome == "accepted":
            self._refusals = 0
            self.ledger.submitted(key, answer.job_id)
        elif answer.outcome == "refused":
            self.ledger.refused(key, answer.message)
            self._refused(task, answer.message, answer.retryable)
        else:
            self.ledger.note(f"no clear answer to the submission of {spec.job_name}: {answer.message}")
        self.report(key, self.ledger.statuses[key])

    def _next_attempt(self, task: Task) -> int:
        known = {key.attempt for key in self.ledger.statuses if key[:2] == (task.point_id, task.repeat)}
        return 1 + max(known | {key.attempt for key in self.workshop.on_disk_of(task)}, default=0)

    def _refused(self, task: Task, message: str, retryable: bool) -> None:
        if retryable:
            self._pending.appendleft(task)
            self._not_before = self.clock() + BUSY_WAIT_S
            return
        self._refusals += 1
        if self._refusals >= REFUSALS_IN_A_ROW and self._pending:
            left = len(self._pending)
            self._pending.clear()
            raise HarnessError(f"{REFUSALS_IN_A_ROW} jobs in a row were refused, {left} were not offered: {message}")

    def _reconsider(self, key: AttemptKey, status: AttemptStatus) -> None:
        task = task_of(key)
        if status.reason == NEVER_QUEUED:
            self._lost_submissions[task] += 1
            if self._lost_submissions[task] <= RESUBMISSIONS:
                self._pending.append(task)
        elif status.state in (JobState.FAILED, JobState.LOST, JobState.TIMED_OUT) and not status.refused:
            self._tries[task] += 1
            if self._tries[task] <= self.retries:
                self._pending.append(task)
