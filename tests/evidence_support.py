"""Writes campaigns as a cluster would leave them, with known truth: no code of the program's own runtime is used.

Each rank's steps are given as durations; everything else (waits, occupancy, provenance) may be set or broken.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.files import sealed_line
from harness.layout import AttemptLayout, CampaignLayout
from harness.model.axes import Axes, Point
from harness.model.campaign import Campaign, PlannedPoint, Task
from harness.model.job import Placement, RunSpec


@dataclass
class FakeRun:
    """One attempt to write. ``durations`` holds one list per rank; ranks given as None leave no file."""

    durations: Sequence[Sequence[float] | None]
    images: int = 32
    waits: Sequence[float] | None = None
    occupancy: Sequence[int | None] | None = None
    fresh: Sequence[int] | None = None
    exit_code: int | None = 0
    run_end: bool = True
    cause: str = "exit"
    warmup: int | None = None
    versions: dict[str, str] = field(default_factory=lambda: {"python": "3.11.2", "torch": "2.13.0"})
    events: list[dict[str, Any]] = field(default_factory=list)
    tail: str = ""


def placement_of(axes: Axes) -> Placement:
    return Placement(
        cluster="local",
        nodes=axes.nodes,
        ranks_per_node=axes.ranks_per_node,
        cores_per_node=axes.cpu_cores,
        walltime_s=600,
        data_path="/data/mnist",
    )


class FakeCampaign:
    """A campaign directory under ``root``; add runs, then :meth:`save`."""

    def __init__(self, root: Path, name: str = "fake", varied: Sequence[str] = ("cpu_cores",), repeats: int = 3):
        self.layout = CampaignLayout(root / name)
        self.name, self.varied, self.repeats = name, tuple(varied), repeats
        self.points: dict[str, PlannedPoint] = {}
        self.tasks: list[Task] = []

    def plan(self, axes: Axes) -> str:
        point_id = Point(axes=axes).id
        self.points[point_id] = PlannedPoint(axes=axes, placement=placement_of(axes))
        for repeat in range(self.repeats):
            task = Task(point_id=point_id, repeat=repeat)
            if task not in self.tasks:
                self.tasks.append(task)
        return point_id

    def add(self, axes: Axes, run: FakeRun, repeat: int = 0, attempt: int = 1) -> AttemptLayout:
        point_id = self.plan(axes)
        layout = self.layout.attempt(point_id, repeat, attempt)
        layout.root.mkdir(parents=True)
        spec = RunSpec(
            campaign=self.name,
            point_id=point_id,
            repeat=repeat,
            attempt=attempt,
            axes=axes,
            placement=self.points[point_id].placement,
            harness_version="0.0",
        )
        layout.point.write_text(spec.model_dump_json())
        for rank, durations in enumerate(run.durations):
            if durations is not None:
                layout.events(rank).write_text(_events(spec, run, rank, durations) + run.tail)
        if run.exit_code is not None:
            record = {"code": run.exit_code, "cause": run.cause, "host": "n1", "job_id": "7"}
            record |= {"started_unix_s": 1000.0, "ended_unix_s": 1060.0}
            layout.exit.write_text(json.dumps(record))
        return layout

    def save(self) -> Campaign:
        campaign = Campaign(
            name=self.name,
            sweep=self.name,
            cluster="local",
            created_unix_s=0.0,
            varied=self.varied,
            repeats=self.repeats,
            points=self.points,
            tasks=tuple(self.tasks),
        )
        self.layout.root.mkdir(parents=True, exist_ok=True)
        self.layout.meta.write_text(campaign.model_dump_json())
        return campaign


def _events(spec: RunSpec, run: FakeRun, rank: int, durations: Sequence[float]) -> str:
    world = spec.placement.ranks
    start = {"event": "run_start", "t_s": 0.0, "schema": 1, "rank": rank, "world": world, "local_rank": rank}
    start |= {"local_world": world, "node": "n1", "pid": 1, "unix_s": 1001.0, "point_id": spec.point_id}
    start |= {"repeat": spec.repeat, "attempt": spec.attempt, "steps_warmup": run.warmup or 0}
    records: list[dict[str, Any]] = [
        start,
        {"event": "provenance", "t_s": 0.0, "versions": run.versions, "host": {"cpu_model": "Test CPU"}},
        {
            "event": "affinity",
            "t_s": 0.0,
            "requested_cores": spec.placement.cores_per_rank,
            "allowed_cpus": list(range(spec.placement.cores_per_rank)),
            "threads": {"intra": 1},
        },
        {"event": "data", "t_s": 0.0, "origin": "synthetic", "digest": "d", "verified": False, "samples": 60000},
        *run.events,
        steps_event(run, durations),
    ]
    if run.run_end:
        count = len(durations)
        end = {"event": "run_end", "t_s": 1.0 + sum(durations), "ok": run.exit_code == 0, "steps": count}
        records.append(end | {"fresh_images": count * run.images, "consumed_images": count * run.images})
    return "".join(sealed_line(record) for record in records)


def steps_event(run: FakeRun, durations: Sequence[float], first: int = 0, begin_s: float = 1.0) -> dict[str, Any]:
    """Steps that follow each other without a gap, from ``begin_s`` on."""
    count = len(durations)
    ends: list[float] = []
    for duration in durations:
        ends.append((ends[-1] if ends else begin_s) + duration)
    waits = list(run.waits or [0.0] * count)
    return {
        "event": "steps",
        "t_s": ends[-1] if ends else begin_s,
        "step": list(range(first, first + count)),
        "begin_s": [begin_s, *ends[:-1]][:count],
        "end_s": ends,
        "wait_s": waits,
        "copy_s": [0.0] * count,
        "compute_s": [d - w for d, w in zip(durations, waits, strict=True)],
        "exchange_s": [0.0] * count,
        "fresh": list(run.fresh or [run.images] * count),
        "consumed": [run.images] * count,
        "occupancy": list(run.occupancy or [None] * count),
    }
