"""What the benchmarks of workloads share: our session under the step clock, and blocks of steps in turn."""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

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
#: steps before the first block: graphs are traced, memory is taken
WARMING = 3
EVENTS = "events.r0.jsonl"


class Spent(NamedTuple):
    """Seconds by the clock, and CPU seconds of all threads of this process."""

    elapsed_s: float
    cpu_s: float

    def since(self, begin: Spent) -> Spent:
        return Spent(self.elapsed_s - begin.elapsed_s, self.cpu_s - begin.cpu_s)

    def ms_per(self, steps: int) -> Spent:
        return Spent(1e3 * self.elapsed_s / steps, 1e3 * self.cpu_s / steps)


#: runs ``lead`` steps that are not counted, then ``steps`` that are, and says what these took. The first step of a turn
#: finds caches and buffers as another side has left them.
Side = Callable[[int, int], Spent]
#: what each side's steps took in each round, in milliseconds
Readings = dict[str, list[Spent]]


class Solo:
    """The exchange of a rank that has no other."""

    name = "none"


def now() -> Spent:
    return Spent(time.perf_counter(), time.process_time())


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
    generator = np.random.default_rng(3)
    count = BATCHES * spec.batch_size
    pixels = generator.integers(0, 256, (count, *dataset.sample_shape), np.uint8)
    recipe = catalog.load(spec.recipe or "")()
    return recipe.prepare(pixels), generator.integers(0, dataset.classes, count)


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


def under_the_step_clock(session: Any, pipeline: Any, directory: Path) -> Side:
    """Steps of the session as a run takes them: each one timed, its events written to a new directory below this."""
    clock = SystemClock()
    events = Path(tempfile.mkdtemp(dir=directory), EVENTS)
    loop = StepClock(session, pipeline, clock, EventWriter(events, clock))
    return timed(lambda steps: loop.run(steps, batch_interval=1))


def timed(loop: Callable[[int], Any]) -> Side:
    """A loop of steps as a side; it returns when all of them are done."""

    def run(lead: int, steps: int) -> Spent:
        loop(lead)
        begin = now()
        loop(steps)
        return now().since(begin)

    return run


def in_turn(
    makers: Mapping[str, Callable[[], Side]], sittings: int, rounds: int, steps: int, lead: int = 1
) -> Readings:
    """In each round a block of every side, in random order.

    All sides are built anew for each sitting, in random order too, so that luck in where its memory came to lie does
    not stay with a side.
    """
    found: Readings = {name: [] for name in makers}
    for _ in range(sittings):
        sides = {name: makers[name]() for name in random.sample(list(makers), len(makers))}
        for run in sides.values():
            run(lead, WARMING)
        for _ in range(rounds):
            for name in random.sample(list(sides), len(sides)):
                found[name].append(sides[name](lead, steps).ms_per(steps))
        sides.clear()
    return found


def one_by_one(makers: Mapping[str, Callable[[], Side]], rounds: int, steps: int, lead: int = 1) -> Readings:
    """In each round a block of every side, in random order, each built for it alone and gone after it.

    So, as in a run, a model has the process to itself. Beside others it takes some per cent more or less, by where its
    memory came to lie.
    """
    found: Readings = {name: [] for name in makers}
    for _ in range(rounds):
        for name in random.sample(list(makers), len(makers)):
            side = makers[name]()
            side(lead, WARMING)
            found[name].append(side(lead, steps).ms_per(steps))
            del side
            gc.collect()
    return found


def sizes(options: argparse.Namespace) -> dict[str, int]:
    """How much is measured: some three minutes of all parts, some seconds with ``--quick``."""
    if options.quick:
        return {"sittings": 1, "rounds": 2, "steps": 2}
    return {"sittings": 2, "rounds": options.rounds or 8, "steps": 5}


def answer(measure: Callable[[argparse.Namespace, Path], Iterator[tuple[str, Any]]]) -> None:
    """What the process of one framework does: measures, and writes its results as lines of JSON where it is told to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("where", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--rounds", type=int)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, options.where.open("w") as stream:
        for name, found in measure(options, Path(directory)):
            print(json.dumps([name, found]), file=stream, flush=True)
