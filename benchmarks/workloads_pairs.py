"""What the benchmarks of workloads share: our session under the step clock, and blocks of steps in turn."""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from harness import catalog
from harness.model.axes import Axes
from harness.model.job import Placement, RunSpec
from harness.runtime.clock import SystemClock
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Batch, Ranks, RunContext
from harness.runtime.stepclock import StepClock

#: batches that the steps go through in turn
BATCHES = 8
#: runs steps and returns their seconds
Block = Callable[[int], float]


class Solo:
    """The exchange of a rank that has no other."""

    name = "none"


def context(workload: str, framework: str, **axes: Any) -> RunContext:
    """What a run of one rank on all of this process's cores hands to the session's builder; the engine is ready."""
    spec = catalog.WORKLOADS[workload]
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    axes = {"dataset": f"synthetic:{spec.dataset}", "batch_size": spec.batch_size, "pipeline": "synthetic"} | axes
    place = Placement(cluster="here", nodes=1, ranks_per_node=1, cores_per_node=len(cpus), walltime_s=60, data_path="")
    run = RunSpec(
        campaign="bench",
        point_id="0" * 16,
        repeat=0,
        attempt=1,
        axes=Axes(workload=workload, framework=framework, cpu_cores=len(cpus), **axes),
        placement=place,
        harness_version="0",
    )
    ranks = Ranks(0, 1, 0, 1, "here")
    device = catalog.load(catalog.ENGINES[framework])().prepare(run, ranks, len(cpus))
    clock = SimpleNamespace(now=time.monotonic, sleep=time.sleep)
    exchange: Any = Solo()
    return RunContext(run, ranks, cpus, len(cpus), exchange, clock, device, None, lambda *_, **__: None)


def session_of(made: RunContext) -> Any:
    """The workload's session, as a run builds it."""
    return catalog.load(catalog.WORKLOADS[made.axes.workload].frameworks[made.axes.framework])(made)


def images_and_labels(workload: str) -> tuple[np.ndarray, np.ndarray]:
    """:data:`BATCHES` batches of a workload's samples as its recipe prepares them: float32 and int64."""
    spec = catalog.WORKLOADS[workload]
    dataset = catalog.DATASETS[spec.dataset or ""]
    random = np.random.default_rng(3)
    count = BATCHES * spec.batch_size
    pixels = random.integers(0, 256, (count, *dataset.sample_shape), np.uint8)
    recipe = catalog.load(spec.recipe or "")()
    return recipe.prepare(pixels), random.integers(0, dataset.classes, count)


class Held:
    """Batches that lie in memory, in turn."""

    def __init__(self, batches: Sequence[Any], size: int):
        self._batches, self._size = batches, size

    def batches(self) -> Iterator[Batch]:
        return (Batch(data, self._size) for data in itertools.cycle(self._batches))

    def occupancy(self) -> int | None:
        return None

    def worker_cpus(self) -> list[int] | None:
        return None

    def close(self) -> None:
        """Nothing is open."""


def under_the_step_clock(session: Any, pipeline: Any, directory: Path) -> Block:
    """Steps of the session as a run takes them: each one timed, its events written."""
    clock = SystemClock()
    loop = StepClock(session, pipeline, clock, EventWriter(directory / f"events.{id(session)}.jsonl", clock))

    def run(steps: int) -> float:
        begin_s = time.perf_counter()
        loop.run(steps, batch_interval=1)
        return time.perf_counter() - begin_s

    return run


def by_the_clock(loop: Callable[[int], Any]) -> Block:
    """Seconds of a loop of steps."""

    def run(steps: int) -> float:
        begin_s = time.perf_counter()
        loop(steps)
        return time.perf_counter() - begin_s

    return run


def in_turn(sides: dict[str, Block], blocks: int, steps: int) -> dict[str, list[float]]:
    """Milliseconds per step of each side in each block; who comes first changes from block to block."""
    for run in sides.values():
        run(3)  # graphs are traced, memory is taken
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(blocks):
        names = list(sides)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            found[name].append(1e3 * sides[name](steps) / steps)
    return found


def answer(measure: Callable[[bool, Path], Iterator[tuple[str, dict[str, list[float]]]]]) -> None:
    """What the process of one framework does: measures, and writes its results as lines of JSON where it is told to."""
    where, quick = Path(sys.argv[1]), "--quick" in sys.argv
    with tempfile.TemporaryDirectory() as directory, where.open("w") as stream:
        for name, found in measure(quick, Path(directory)):
            print(json.dumps([name, found]), file=stream, flush=True)
