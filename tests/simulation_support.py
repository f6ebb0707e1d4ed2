"""A scheduler, its jobs and its clock, all simulated: minutes pass in milliseconds and anything may go wrong.

Jobs keep to the contract of the real job script: claim by mkdir, or leave; then events and exit.json.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.jobs.attempts import CLAIMED_CODE, UNWRITABLE_CODE, Workshop
from harness.jobs.drive import Driver, one_by_one
from harness.jobs.ledger import Ledger
from harness.jobs.lock import locked
from harness.jobs.room import Room
from harness.jobs.schedulers.interface import Submitted
from harness.jobs.submission import Batch
from harness.jobs.watch import Pace, Watcher
from harness.layout import AttemptLayout, CampaignLayout, GroupLayout
from harness.model.axes import Axes, point_id
from harness.model.campaign import Campaign, PlannedPoint, Task
from harness.model.cluster import Cluster, NodeType, Storage
from harness.model.group import Group
from harness.model.job import JobState, Observation, Placement

PACE = Pace(tick_s=2.0, ask_first_s=5.0, ask_most_s=60.0, grace_s=90.0)
CLUSTER = Cluster(
    name="far",
    scheduler="slurm",
    node=NodeType(cores_per_socket=8),
    storage={"hpctmp": Storage(path="/data")},
)


def campaign(points: int = 2, repeats: int = 1, walltime_s: int = 600, ranks: int = 1, first: int = 1) -> Campaign:
    """A campaign of ``points`` replay points that differ in prefetch."""
    planned = {}
    for prefetch in range(first, first + points):
        axes = Axes(workload="replay", framework="none", prefetch=prefetch, ranks_per_node=ranks)
        placement = Placement(
            cluster="far", nodes=1, ranks_per_node=ranks, cores_per_node=ranks, walltime_s=walltime_s, data_path=""
        )
        planned[point_id(axes)] = PlannedPoint(axes=axes, placement=placement)
    return Campaign(
        name="sim",
        sweep="sim",
        cluster="far",
        created_unix_s=1.0,
        varied=("prefetch",),
        repeats=repeats,
        points=planned,
        tasks=tuple(Task(point_id=p, repeat=r) for r in range(repeats) for p in planned),
    )


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0
        self.on_tick: list[Callable[[], None]] = []

    def now(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += max(seconds, 0.01)
        for action in self.on_tick:
            action()


@dataclass
class Job:
    """``waiting``: attempts that it has still to run, one after the other: several in a pack."""

    id: str
    name: str
    waiting: list[AttemptLayout]
    lands_s: float
    ends_s: float = 0.0
    paths: AttemptLayout = AttemptLayout(Path())
    state: JobState = JobState.QUEUED
    forgotten: bool = False
    exit_status: int | None = None


@dataclass
class Scheduler:
    """Stands in for :class:`harness.jobs.site.Site`.

    ``fate(name)`` is what becomes of a job (in a group: of ``name/point/attempt``): ok, fail, timeout, vanish (no
    evidence, and the scheduler forgets it), silent (ends without evidence but is remembered as a success), stuck
    (can never run), requeue (stopped and put back into the queue, for ``back_s``), requeue_killed (so that it left no
    exit record), unwritable (its directory cannot be seen where it runs).
    """

    clock: Clock
    fate: Callable[[str], str] = lambda _name: "ok"
    lasts_s: float = 20.0
    back_s: float = 3600.0
    answers: Callable[[str], str] = lambda _name: "accepted"
    delay_s: Callable[[str], float] = lambda _name: 0.0
    is_down: Callable[[], bool] = lambda: False
    is_local: bool = False
    silence: str = ""
    known: dict[str, Job] = field(default_factory=dict)
    others: list[Observation] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    executed: Counter[str] = field(default_factory=Counter)
    offered: list[str] = field(default_factory=list)
    questions: int = 0
    most_active: int = 0

    def __post_init__(self) -> None:
        self.clock.on_tick.append(self.advance)

    def submit(self, script: str, job_name: str) -> Submitted:
        self.offered.append(job_name)
        answer = self.answers(job_name)
        if answer in ("refused", "busy"):
            return Submitted("refused", message="the queue says no", retryable=answer == "busy")
        lands_s = self.clock.now() + self.delay_s(job_name)
        if answer != "swallowed":
            number = f"{len(self.known)}.far"
            for job in self._jobs_of(number, Path(script).parent, job_name, lands_s):
                self.known[job.id] = job
            if answer == "accepted":
                return Submitted("accepted", job_id=number)
        return Submitted("unknown", message="server did not answer")

    def _jobs_of(self, number: str, directory: Path, name: str, lands_s: float) -> list[Job]:
        group = GroupLayout(directory)
        if not group.meta.exists():
            return [Job(number, name, [AttemptLayout(directory)], lands_s)]
        content = Group.model_validate_json(group.meta.read_bytes())
        paths = [CampaignLayout(directory.parents[1]).attempt(*key) for key in content.attempts]
        if content.kind == "pack":
            return [Job(number, name, paths, lands_s)]
        return [Job(self.element_id(number, index), name, [path], lands_s) for index, path in enumerate(paths)]

    def observe(self, ids: Sequence[str]) -> dict[str, Observation]:
        self.questions += 1
        if self.is_down():
            return {}
        return {i: self._seen(self.known[i]) if i in self.known else Observation(job_id=i, state=None) for i in ids}

    def jobs(self) -> list[Observation] | None:
        if self.is_down():
            return None
        here = [job for job in self.known.values() if job.lands_s <= self.clock.now() and not job.forgotten]
        return [*self.others, *map(self._seen, here)]

    def element_id(self, array_id: str, index: int) -> str:
        return f"{array_id}_{index}"

    def array_id(self, job_id: str) -> str:
        return job_id.partition("_")[0]

    def cancel(self, ids: Sequence[str]) -> list[str]:
        self.cancelled += ids
        for job in [job for job in self.known.values() if {job.id, self.array_id(job.id)} & set(self.cancelled)]:
            if job.state is JobState.RUNNING:
                self._finish(job, 143, "term")
            if not job.state.ended:
                job.state = JobState.CANCELLED
        return []

    def advance(self) -> None:
        now = self.clock.now()
        for job in self.known.values():
            if job.state is JobState.QUEUED and now >= job.lands_s and self._fate(job) != "stuck":
                self._start(job)
            elif job.state is JobState.RUNNING and now >= job.ends_s:
                self._end(job)
        active = sum(not job.state.ended for job in self.known.values())
        self.most_active = max(self.most_active, active)

    def _seen(self, job: Job) -> Observation:
        state = None if job.forgotten else job.state
        stuck = self._fate(job) == "stuck" and not job.state.ended
        reason = "Can Never Run" if stuck else ""
        return Observation(
            job_id=job.id,
            state=state,
            native_state="X",
            exit_status=job.exit_status,
            job_name=job.name,
            reason=reason,
            never_runnable=stuck,
        )

    def _start(self, job: Job) -> None:
        if self._fate(job) == "unwritable":
            job.state, job.exit_status = JobState.FAILED, UNWRITABLE_CODE
            return
        job.paths = job.waiting.pop(0)
        try:
            job.paths.claim.mkdir()
        except OSError:  # somebody else's: it leaves without a trace
            if job.waiting:
                self._start(job)
            else:
                job.state, job.exit_status = JobState.FAILED, CLAIMED_CODE
            return
        self.executed[f"{job.paths.root.parent.name}/{job.paths.root.name.partition('a')[0]}"] += 1
        job.state, job.ends_s = JobState.RUNNING, self.clock.now() + self.lasts_s

    def _end(self, job: Job) -> None:
        fate = self._fate(job)
        if fate in ("requeue", "requeue_killed"):
            if fate == "requeue":
                self._finish(job, 143, "term")
            job.waiting.insert(0, job.paths)
            job.state, job.lands_s = JobState.QUEUED, self.clock.now() + self.back_s
            return
        if fate in ("ok", "fail", "timeout"):
            self._finish(job, {"ok": 0, "fail": 1, "timeout": 143}[fate], "term" if fate == "timeout" else "exit")
        job.forgotten = fate == "vanish"
        if job.waiting and not job.forgotten and fate != "timeout":
            self._start(job)
            return
        ends = {"fail": JobState.FAILED, "timeout": JobState.TIMED_OUT}
        job.state = ends.get(fate, JobState.SUCCEEDED)

    def _fate(self, job: Job) -> str:
        paths = job.waiting[0] if job.state is JobState.QUEUED else job.paths
        is_alone = job.name.endswith(paths.root.name)
        return self.fate(job.name if is_alone else f"{job.name}/{paths.root.parent.name}/{paths.root.name}")

    def _finish(self, job: Job, code: int, cause: str) -> None:
        times = {"started_unix_s": job.ends_s - self.lasts_s, "ended_unix_s": self.clock.now()}
        job.paths.events(0).write_text(json.dumps({"event": "run_end", "ok": code == 0}) + "\n")
        job.paths.exit.write_text(json.dumps({"code": code, "cause": cause, "host": "n1", **times}))


@dataclass
class World:
    """One campaign directory, one scheduler, one clock; harnesses come and go."""

    root: Path
    plan: Campaign
    clock: Clock = field(default_factory=Clock)
    limit: int = 100
    quota: int | None = None
    batching: Callable[[Sequence[Task]], Sequence[Batch]] = one_by_one
    retries: int = 0
    said: list[str] = field(default_factory=list)
    reports: list[tuple[Any, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.clock)

    @property
    def layout(self) -> CampaignLayout:
        return CampaignLayout(self.root)

    def harness(self, ledger: Ledger, lock: Any) -> Driver:
        workshop = Workshop(self.plan, CLUSTER, self.layout, lambda _s, _d: "#!/bin/bash\n", "0")
        site: Any = self.scheduler
        watcher = Watcher(workshop, site, ledger, self.clock.now, PACE)
        return Driver(
            workshop=workshop,
            site=site,
            ledger=ledger,
            watcher=watcher,
            lock=lock,
            room=Room(site, ledger, self.clock.now, self.limit, self.quota),
            batching=self.batching,
            say=self.said.append,
            clock=self.clock.now,
            sleep=self.clock.sleep,
            report=lambda key, status: self.reports.append((key, status)),
            tick_s=PACE.tick_s,
            retries=self.retries,
        )

    def session(self, act: Callable[[Driver], None]) -> Ledger:
        """Open the campaign as a harness does, and let it ``act``."""
        with locked(self.root / "lock"), Ledger(self.layout.ledger, time.time) as ledger:

            class Held:
                def hold(self) -> None: ...

            driver = self.harness(ledger, Held())
            driver.reconcile()
            act(driver)
        return ledger


class Crash(BaseException):
    """The harness is killed here."""


class Killer:
    """Kills the harness before or after its n-th contact with the outside world, once."""

    def __init__(self, at: int, after: bool):
        self.left, self.after = at, after

    def around(self, function: Callable[..., object]) -> Callable[..., object]:
        def guarded(*args: object, **kwargs: object) -> object:
            self.left -= 1
            if self.left == 0 and not self.after:
                raise Crash
            result = function(*args, **kwargs)
            if self.left == 0:
                raise Crash
            return result

        return guarded
