"""What instrumentation costs a real training loop: the harness's loop against a bare one of the same model and data.

    python benchmarks/bench_overhead.py [--quick] [--json FILE] [--cases torch-lenet,tf-resnet20]

Each case runs in a process of its own. There both loops train the same model on batches of the same pipeline, which
they take in turn; blocks of steps that last about a second alternate in random order within pairs, so that a drift of
the machine falls on both. The clocked side has everything that a run has: the step clock, the events on disk, the
question to the buffer, and the sampling process, which is stopped while the bare side runs. Since it catches up at
once, it samples about twice as often per second of the clocked side as in a run, which makes the cost look larger
than it is. The ratio is that of the times of paired blocks, with Student's t on their logarithms; pairs are added until
its interval is narrow enough to tell 1 % from nothing, whatever its value.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, arguments, finish, paired_ratio

from harness.comm.none import NoExchange
from harness.model.axes import Axes, point_id
from harness.model.job import Placement, RunSpec
from harness.pipelines.stream import BatchStream
from harness.runtime.clock import SystemClock
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Batch, Ranks, RunContext
from harness.runtime.samplers import Sampler
from harness.runtime.stepclock import StepClock

AIM = 1.01
WARM_STEPS = 10
#: of the interval, to either side: pairs are added, up to MOST_PAIRS, until it is no wider
HALF_WIDTH = 0.006
PAIRS, MOST_PAIRS = 48, 240


@dataclass(frozen=True)
class Case:
    """A workload in a framework; ``block_s``: what a block of steps should about last."""

    framework: str
    workload: str
    dataset: str
    shape: tuple[int, int, int]
    batch: int
    pipeline: str
    block_s: float = 1.0


CASES = {
    "torch-lenet": Case("torch", "lenet_mnist", "digits:mnist", (28, 28, 1), 64, "memory"),
    "torch-resnet20": Case("torch", "resnet20_cifar10", "photos:cifar10", (32, 32, 3), 32, "memory"),
    "tf-lenet": Case("tensorflow", "lenet_mnist", "digits:mnist", (28, 28, 1), 64, "tf_memory"),
    "tf-resnet20": Case("tensorflow", "resnet20_cifar10", "photos:cifar10", (32, 32, 3), 32, "tf_memory"),
}


def context_of(case: Case, threads: int = 1) -> RunContext:
    """One rank with ``threads`` for computing and a worker for loading, its framework made ready."""
    from harness import catalog

    axes = Axes(
        workload=case.workload,
        framework=case.framework,
        dataset=case.dataset,
        pipeline=case.pipeline,
        batch_size=case.batch,
        workers=1,
    )
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
    ranks = Ranks(0, 1, 0, 1, "here")
    device = catalog.load(catalog.ENGINES[case.framework])().prepare(spec, ranks, threads)
    return RunContext(
        spec, ranks, (0,), threads, NoExchange(), SystemClock(), device, None, lambda kind, **fields: None
    )


def stream_of(case: Case) -> BatchStream:
    from harness import catalog

    recipe = catalog.load(str(catalog.WORKLOADS[case.workload].recipe))()
    generator = np.random.default_rng(0)
    images = recipe.prepare(generator.integers(0, 256, (4096, *case.shape), dtype=np.uint8))
    return BatchStream(images, generator.integers(0, 10, 4096), recipe, case.batch, rank=0, world=1, seed=0)


class Shared:
    """A pipeline whose batches both loops take in turn."""

    def __init__(self, pipeline: Any):
        self._pipeline = pipeline
        self._batches: Iterator[Batch] = pipeline.batches()

    def batches(self) -> Iterator[Batch]:
        return self._batches

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipeline, name)


def pipeline_of(case: Case, context: RunContext) -> Shared:
    """The case's pipeline as a run has it."""
    stream = stream_of(case)
    if case.framework == "torch":
        from harness.pipelines.torch_memory import TorchMemory

        return Shared(TorchMemory(stream, case.batch, workers=1, prefetch=2))
    from harness.pipelines import tf_memory, tf_stream

    recipe = tf_memory.Streamed(context, stream).batches
    return Shared(tf_stream.TfStream(context, recipe, prefetch=tf_memory.PREFETCH, samples=0))


def bare(session: Any, batches: Iterator[Batch], steps: int) -> None:
    """The loop that a user would write."""
    for _ in range(steps):
        session.step(session.to_device(next(batches)))


class HeldSampler(Sampler):
    """A sampling process that can be held while the bare loop runs."""

    def hold(self, held: bool) -> None:
        self._process.send_signal(signal.SIGSTOP if held else signal.SIGCONT)


def measured(case: Case, pairs: tuple[int, int], directory: Path) -> dict[str, Any]:
    """Seconds per step of each block, in so many pairs at least and at most."""
    from harness import catalog

    context = context_of(case)
    session = catalog.load(catalog.WORKLOADS[case.workload].frameworks[case.framework])(context)
    pipeline = pipeline_of(case, context)
    batches = pipeline.batches()
    clock = SystemClock()
    writer = EventWriter(directory / "events.r0.jsonl", clock)
    sampler = HeldSampler(directory / "samples.here.jsonl", [os.getpid()], writer.origin_s)
    clocked = StepClock(session, pipeline, clock, writer)
    bare(session, batches, WARM_STEPS)
    clocked.run(WARM_STEPS, 1)
    used = time.process_time()  # other load must not make blocks short: each ends with a record on disk
    bare(session, batches, WARM_STEPS)
    steps = max(2, round(case.block_s * WARM_STEPS / (time.process_time() - used)))
    loops: dict[str, Callable[[], None]] = {
        "bare": lambda: bare(session, batches, steps),
        "clocked": lambda: clocked.run(steps, 1),
    }
    found: dict[str, list[float]] = {key: [] for name in loops for key in (name, f"{name} CPU")}
    while needs_more(found["clocked"], found["bare"], *pairs):
        for name in random.sample(sorted(loops), 2):
            sampler.hold(name == "bare")
            begin, used = time.perf_counter(), time.process_time()
            loops[name]()
            found[name].append((time.perf_counter() - begin) / steps)
            found[f"{name} CPU"].append((time.process_time() - used) / steps)
    sampler.hold(False)
    sampler.close()
    writer.end(ok=True)
    pipeline.close()
    return {"steps": steps, **found}


def needs_more(above: list[float], below: list[float], least: int, most: int) -> bool:
    """Whether another pair is to be measured."""
    if len(above) < least:
        return True
    ratio = paired_ratio(above, below)
    return len(above) < most and ratio.high / ratio.low > (1 + HALF_WIDTH) ** 2


def row_of(name: str, pairs: int | None) -> Row:
    """A case in a process of its own: TensorFlow and torch would share thread pools and memory."""
    command = [sys.executable, __file__, "--case", name, *(["--pairs", str(pairs)] if pairs else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    case, ratio = CASES[name], paired_ratio(found["clocked"], found["bare"])
    cpu = paired_ratio(found["clocked CPU"], found["bare CPU"])
    note = f"{ratio.n} pairs of {found['steps']} steps, batch {case.batch}, sampling process on; CPU time: {cpu}"
    return Row(
        f"instrumented training loop: {case.workload}, {case.framework}",
        float(np.median(found["clocked"])) * 1e3,
        "ms a step",
        "bare loop",
        float(np.median(found["bare"])) * 1e3,
        "ours / bare",
        ratio,
        f"≤ {AIM}",
        ratio.at_most(AIM),
        note,
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cases", default="torch-lenet,torch-resnet20,tf-resnet20", help=", ".join(CASES))
    parser.add_argument("--pairs", type=int, help="exactly so many pairs of blocks of each case")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    pairs = options.pairs or (4 if options.quick else None)
    if options.case:
        bounds = (pairs, pairs) if pairs else (PAIRS, MOST_PAIRS)
        with tempfile.TemporaryDirectory() as directory:
            print(json.dumps(measured(CASES[options.case], bounds, Path(directory))))
        return
    names = ["torch-lenet"] if options.quick else options.cases.split(",")
    finish([row_of(name, pairs) for name in names], options)


if __name__ == "__main__":
    main()
