"""Campaigns with awkward data, for figures and charts: long names, gaps, many series, one point, huge numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from evidence_support import FakeCampaign, FakeRun

from harness.model.axes import Axes

LONG = "a name with $math$ _under_ <b>&amp; \\frac{1}{2} % and much more than fits into any legend of any paper 測定"


class Shape:
    """What is awkward: values of the first axis, series, seconds of a step at the first value, repeats, gaps."""

    def __init__(
        self,
        values: tuple[int, ...] = (1, 2, 4),
        series: int = 2,
        name: str = "s",
        step_s: float = 0.2,
        repeats: int = 2,
        gaps: bool = False,
        failed: bool = False,
    ):
        self.values, self.series, self.name, self.step_s = values, series, name, step_s
        self.repeats, self.gaps, self.failed = repeats, gaps, failed

    def places(self) -> list[tuple[int, int]]:
        """(number of the series, value) of each point."""
        found = [(number, value) for number in range(self.series) for value in self.values]
        return [p for p in found if not self.gaps or (p[0] + self.values.index(p[1])) % 3]

    def named(self, number: int) -> str:
        return f"{self.name}{number}"

    def seconds(self, number: int, value: int, repeat: int) -> float:
        return self.step_s / value**0.8 * (1 + number / 3) * (1 + 0.02 * repeat)

    def fails(self, number: int) -> bool:
        return self.failed and number == 0


USUAL = Shape()
SHAPES = {
    "one_point": Shape(values=(1,), series=1),
    "one_repeat": Shape(repeats=1),
    "missing_cells": Shape(values=(1, 2, 4, 8), series=4, gaps=True),
    "60_series": Shape(values=(1, 4), series=60, repeats=1),
    "long_names": Shape(series=3, name=LONG),
    "huge": Shape(step_s=3e-7),
    "small": Shape(step_s=4e5),
    "one_series_failed": Shape(series=3, failed=True),
    "many_values": Shape(values=(1, 2, 3, 5, 7, 10, 16, 24, 32, 48, 64, 100, 128, 256), repeats=1),
}

Add = Callable[..., None]


def along(shape: Shape, add: Add) -> tuple[str, ...]:
    for number, value in shape.places():
        add(number, value, cpu_cores=value, storage=shape.named(number))
    return ("cpu_cores", "storage")


def over_ranks(shape: Shape, add: Add) -> tuple[str, ...]:
    for number, value in shape.places():
        add(
            number,
            value,
            ranks=min(value, 4),
            ranks_per_node=min(value, 4),
            cpu_cores=min(value, 4),
            encoding=shape.named(number),
        )
    return ("ranks_per_node", "encoding")


def over_two(shape: Shape, add: Add) -> tuple[str, ...]:
    for number, value in shape.places():
        for prefetch in (0, 128):
            add(number, value, parallel_threads=value, prefetch=prefetch, storage=shape.named(number))
    return ("parallel_threads", "prefetch", "storage")


def by_name(shape: Shape, add: Add) -> tuple[str, ...]:
    for number, value in shape.places():
        stage = [{"event": "stage", "t_s": 0.0, "from_path": "a", "to_path": "b", "bytes": 9, "files": 1}]
        for storage in ("hpctmp", shape.name + "scratch"):
            events = [] if storage == "hpctmp" else [stage[0] | {"seconds": 70 * shape.step_s}]
            add(number, value * (1 + bool(events)), encoding=shape.named(number), storage=storage, events=events)
    return ("encoding", "storage")


def queues(shape: Shape, add: Add) -> tuple[str, ...]:
    for number, value in shape.places():
        loss = [{"event": "loss", "t_s": 1.0, "step": 9, "value": 2.5 / (1 + number)}]
        add(
            number,
            value,
            workers=value,
            batch_interval=number + 1,
            occupancy=[30 + 5 * i for i in range(13)],
            events=loss,
        )
    return ("workers", "batch_interval")


SUBJECTS = {
    along: (
        "training-time",
        "images-per-second",
        "speed-up",
        "where-time-goes",
        "step-time",
        "ceilings",
        "utilisation",
    ),
    over_ranks: ("scaling",),
    over_two: ("two-axes", "two-axes-lines"),
    by_name: ("encoding", "storage-staging"),
    queues: ("queue-grid", "enqueue-rate", "loss"),
}


def campaign(root: Path, shape: Shape, subject: Callable[[Shape, Add], tuple[str, ...]], sweep: str) -> FakeCampaign:
    made = FakeCampaign(root, sweep, repeats=shape.repeats)
    seen: set[str] = set()

    def add(
        number: int, value: int, ranks: int = 1, events: Sequence[dict] = (), occupancy: object = None, **axes: object
    ) -> None:
        point = Axes.model_validate({"workload": "replay", "steps_timed": 12, "batch_size": 32} | axes)
        if point.model_dump_json() in seen:
            return
        seen.add(point.model_dump_json())
        for repeat in range(shape.repeats):
            step_s = shape.seconds(number, value, repeat)
            code = 3 if shape.fails(number) else 0
            run = FakeRun([[3 * step_s] + [step_s] * 12] * ranks, waits=[0.0] + [0.3 * step_s] * 12, exit_code=code)
            run.events, run.occupancy = list(events), occupancy  # type: ignore[assignment]
            attempt = made.add(point, run, repeat=repeat)
            samples = [
                {"t_s": i * step_s, "cpu_percent": [9 * i, 100], "gpu": [{"util_percent": 33}]} for i in range(9)
            ]
            attempt.samples("n1").write_text("".join(json.dumps(sample) + "\n" for sample in samples))

    made.varied = subject(shape, add)
    return made
