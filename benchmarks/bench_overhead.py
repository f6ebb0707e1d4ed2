"""What instrumentation costs a real training loop: the step clock's loop against a bare one, ratio with its interval.

    python benchmarks/bench_overhead.py [--blocks 30] [--steps 40]

Both loops train the same LeNet in the same process, fed by the same torch DataLoader pipeline of digits held in memory;
blocks of steps alternate in random order within pairs, so that a drift of the machine falls on both. The ratio is that
of paired blocks; its 95 % interval is Student's t on their logarithms. Elapsed time is what counts; on a machine with
other load it scatters, and the CPU time of the process, of which the instrumentation takes its part, tells more.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats as distributions

from harness.comm.none import NoExchange
from harness.model.axes import Axes, point_id
from harness.model.job import Placement, RunSpec
from harness.pipelines.stream import BatchStream
from harness.pipelines.torch_memory import TorchMemory
from harness.runtime.clock import SystemClock
from harness.runtime.engine_torch import Engine
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Batch, Ranks, RunContext
from harness.runtime.stepclock import StepClock
from harness.workloads.lenet_mnist.model_torch import build
from harness.workloads.lenet_mnist.recipe import Recipe

BATCH = 64


class Shared:
    """A pipeline whose batches both loops take in turn."""

    def __init__(self, pipeline: TorchMemory):
        self._pipeline = pipeline
        self._batches = pipeline.batches()

    def batches(self) -> Iterator[Batch]:
        return self._batches

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipeline, name)


def made(directory: Path) -> tuple[Any, Shared, EventWriter]:
    """Session, pipeline and event writer of one rank."""
    axes = Axes(workload="lenet_mnist", framework="torch", dataset="digits:mnist", pipeline="memory", batch_size=BATCH)
    placement = Placement(
        cluster="bench", nodes=1, ranks_per_node=1, cores_per_node=1, walltime_s=600, data_path="/nowhere"
    )
    spec = RunSpec(
        campaign="bench",
        point_id=point_id(axes),
        repeat=0,
        attempt=1,
        axes=axes,
        placement=placement,
        harness_version="0",
    )
    ranks, clock = Ranks(0, 1, 0, 1, "here"), SystemClock()
    device = Engine().prepare(spec, ranks, 1)
    context = RunContext(spec, ranks, (0,), 1, NoExchange(), clock, device, None, lambda kind, **fields: None)
    generator = np.random.default_rng(0)
    images = Recipe().prepare(generator.integers(0, 256, (4096, 28, 28, 1), dtype=np.uint8))
    stream = BatchStream(images, generator.integers(0, 10, 4096), Recipe(), BATCH, rank=0, world=1, seed=0)
    pipeline = Shared(TorchMemory(stream, BATCH, workers=1, prefetch=2))
    return build(context), pipeline, EventWriter(directory / "events.r0.jsonl", clock)


def bare(session: Any, pipeline: Shared, steps: int) -> None:
    """The loop that a user would write."""
    batches = pipeline.batches()
    for _ in range(steps):
        session.step(session.to_device(next(batches)))


def timed(loop: Any) -> tuple[float, float]:
    """(elapsed, CPU) seconds of a call."""
    begin, used = time.monotonic(), time.process_time()
    loop()
    return time.monotonic() - begin, time.process_time() - used


def report(word: str, logs: list[float]) -> None:
    mean, error = float(np.mean(logs)), float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
    width = float(distributions.t.ppf(0.975, len(logs) - 1)) * error
    low, high = (math.expm1(mean - width), math.expm1(mean + width))
    print(f"{word:13} {math.expm1(mean):+.2%}, 95 % interval {low:+.2%} to {high:+.2%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=30, help="pairs of blocks")
    parser.add_argument("--steps", type=int, default=40, help="steps of a block")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        session, pipeline, writer = made(Path(directory))
        clocked = StepClock(session, pipeline, SystemClock(), writer)  # type: ignore[arg-type]
        loops = {
            "bare": lambda: bare(session, pipeline, options.steps),
            "clocked": lambda: clocked.run(options.steps, 1),
        }
        for loop in loops.values():
            loop()  # the first steps allocate and tune
        elapsed, used, length = [], [], []
        for _ in range(options.blocks):
            order = random.sample(sorted(loops), 2)
            took = {name: timed(loops[name]) for name in order}
            elapsed.append(math.log(took["clocked"][0] / took["bare"][0]))
            used.append(math.log(took["clocked"][1] / took["bare"][1]))
            length.append(took["bare"][0] / options.steps)
        writer.end(ok=True)
        pipeline.close()
    step_ms = np.median(length) * 1e3
    print(f"{options.blocks} pairs of {options.steps} steps, a step of the bare loop takes {step_ms:.1f} ms")
    report("elapsed time", elapsed)
    report("CPU time", used)


if __name__ == "__main__":
    main()
