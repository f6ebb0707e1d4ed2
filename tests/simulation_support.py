"""A scheduler, its jobs and its clock, all simulated: minutes pass in milliseconds and anything may go wrong.

Jobs keep to the contract of the real job script: claim by mkdir, or leave; then events and exit.json.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.jobs.attempts import Workshop
from harness.jobs.drive import Driver
from harness.jobs.ledger import Ledger
from harness.jobs.lock import locked
from harness.jobs.schedulers.interface import Submitted
from harness.jobs.watch import Pace, Watcher
from harness.layout import AttemptLayout, CampaignLayout
from harness.model.axes import Axes, point_id
from harness.model.campaign import Campaign, PlannedPoint, Task
from harness.model.cluster import Cluster, NodeType, Storage
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
    id: str
    name: str
    paths: AttemptLayout
    lands_s: float
    ends_s: float
    state: JobState = JobState.QUEUED
    forgotten: bool = False


@dataclass
class Scheduler:
    """Stands in for :class:`harness.jobs.site.Site`.

    ``fate(name)`` is what becomes of a job: ok, fail, vanish (no evidence, and the scheduler forgets it), silent
    (ends without evidence but is remembered as a success), stuck (can never run).
    """

    clock: Clock
    fate: Callable[[str], str] = lambda _name: "ok"
    lasts_s: float = 20.0
    answers: Callable[[str], str] = lambda _name: "accepted"
    delay_s: Callable[[str], float] = lambda _name: 0.0
    is_down: Callable[[], bool] = lambda: False
    is_local: bool = False
    jobs: dict[str, Job] = field(default_factory=dict)
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
            job = Job(f"{len(self.jobs)}.far", job_name, AttemptLayout(Path(script).parent), lands_s, 0.0)
            self.jobs[job.id] = job
            if answer == "accepted":
                return Submitted("accepted", job_id=job.id)
        return Submitted("unknown", message="server did not answer")

    def observe(self, ids: Sequence[str]) -> dict[str, Observation]:
        self.questions += 1
        if self.is_down():
            return {}
        return {i: self._seen(self.jobs[i]) if i in self.jobs else Observation(job_id=i, state=None) for i in ids}

    def find(self) -> dict[str, Observation] | None:
        if self.is_down():
            return None
        return {j.name: self._seen(j) for j in self.jobs.values() if j.lands_s <= self.clock.now() and not j.forgotten}

    def cancel(self, ids: Iterable[str]) -> list[str]:
        for job in map(self.jobs.__getitem__, ids):
            if job.state is JobState.RUNNING:
                self._finish(job, 143, "term")
            if not job.state.ended:
                job.state = JobState.CANCELLED
        return []

    def advance(self) -> None:
        now = self.clock.now()
        for job in self.jobs.values():
            if job.state is JobState.QUEUED and now >= job.lands_s and self.fate(job.name) != "stuck":
                self._start(job)
            elif job.state is JobState.RUNNING and now >= job.ends_s:
                self._end(job)
        active = sum(not job.state.ended for job in self.jobs.values())
        self.most_active = max(self.most_active, active)

    def _seen(self, job: Job) -> Observation:
        state = None if job.forgotten else job.state
        stuck = self.fate(job.name) == "stuck" and not job.state.ended
        reason = "Can Never Run" if stuck else ""
        return Observation(
            job_id=job.id, state=state, native_state="X", job_name=job.name, reason=reason, never_runnable=stuck
        )

    def _start(self, job: Job) -> None:
        try:
            job.paths.claim.mkdir()
        except OSError:
            job.state = JobState.FAILED  # somebody else's: it leaves without a trace
            return
        self.executed[f"{job.paths.root.parent.name}/{job.paths.root.name.partition('a')[0]}"] += 1
        job.state, job.ends_s = JobState.RUNNING, self.clock.now() + self.lasts_s

    def _end(self, job: Job) -> None:
        fate = self.fate(job.name)
        if fate in ("ok", "fail"):
            self._finish(job, 0 if fate == "ok" else 1, "exit")
        job.state = JobState.FAILED if fate == "fail" else JobState.SUCCEEDED
        job.forgotten = fate == "vanish"

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
    retries: int = 0
    reports: list[tuple[Any, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.clock)

    @property
    def layout(self) -> CampaignLayout:
        return CampaignLayout(self.root)

    def harness(self, ledger: Ledger, lock: Any) -> Driver:
        workshop = Workshop(self.plan, CLUSTER, self.layout, lambda _c, _s, _d: "#!/bin/bash\n", "0")
        site: Any = self.scheduler
        watcher = Watcher(workshop, site, ledger, self.clock.now, PACE)
        return Driver(
            workshop=workshop,
            site=site,
            ledger=ledger,
            watcher=watcher,
            lock=lock,
            limit=self.limit,
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
