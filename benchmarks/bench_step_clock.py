"""What the step clock itself costs: its loop against a bare one around a step that does nothing, and its record's size.

    python benchmarks/bench_step_clock.py [--quick] [--json FILE]

Steps that do nothing give the upper bound: events are then written every thousand steps, with real steps once a second.
The cost of asking the buffers how full they are comes on top, once per step; it is measured for each kind of buffer.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, arguments, finish

from harness.model.axes import Axes, point_id
from harness.model.job import Placement, RunSpec
from harness.runtime.clock import SystemClock
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Batch, ModelFacts, StepOutcome
from harness.runtime.stepclock import StepClock

#: Microseconds a step that the clock may take: 1 % of the shortest step that anybody trains with, about 1 ms.
AIM_US = 10.0
AIM_BYTES = 100.0


class Endless:
    """One batch again and again."""

    def batches(self) -> Iterator[Batch]:
        batch = Batch(None, 32)
        while True:
            yield batch

    def occupancy(self) -> int | None:
        return 1

    def worker_cpus(self) -> list[int] | None:
        return None

    def close(self) -> None:
        return None


class Nothing:
    """A step without work."""

    def facts(self) -> ModelFacts:
        return ModelFacts("busy", 0, 0)

    def to_device(self, batch: Batch) -> Batch:
        return batch

    def step(self, batch: Batch) -> StepOutcome:
        return StepOutcome(0.0)

    def digest(self) -> str:
        return ""

    def close(self) -> None:
        return None


def bare_s(steps: int) -> float:
    """Seconds per step of the loop that a user would write."""
    session, batches = Nothing(), Endless().batches()
    begin = time.perf_counter()
    for _ in range(steps):
        session.step(session.to_device(next(batches)))
    return (time.perf_counter() - begin) / steps


def clocked(steps: int) -> tuple[float, float]:
    """(seconds, bytes of evidence) per step of the same under the step clock, events in a temporary directory."""
    with tempfile.TemporaryDirectory() as directory:
        clock, path = SystemClock(), Path(directory, "events.r0.jsonl")
        writer = EventWriter(path, clock)
        loop = StepClock(Nothing(), Endless(), clock, writer)
        begin = time.perf_counter()
        loop.run(steps, batch_interval=1)
        elapsed_s = time.perf_counter() - begin
        writer.end(ok=True)
        return elapsed_s / steps, path.stat().st_size / steps


def clock_rows(steps: int, repeats: int) -> list[Row]:
    # the least of several: whatever else the machine does only adds
    bare = min(bare_s(steps) for _ in range(repeats))
    found = [clocked(steps) for _ in range(repeats)]
    cost_us = (min(seconds for seconds, _ in found) - bare) * 1e6
    size = max(size for _, size in found)
    note = f"{steps:,} steps that do nothing, the least of {repeats}; {cost_us / 1e4:.2%} of a step of 10 ms"
    whole = f"of events.r<rank>.jsonl, per rank; {size * 1e5 / 1e6:.1f} MB for 100,000 steps"
    return [
        Row("step clock and events, per step", cost_us, "µs", aim=f"≤ {AIM_US:g}", met=cost_us <= AIM_US, note=note),
        Row("evidence, per step", size, "bytes", aim=f"≤ {AIM_BYTES:g}", met=size <= AIM_BYTES, note=whole),
    ]


def spec_of(**axes: Any) -> RunSpec:
    made = Axes(**axes)
    placement = Placement(
        cluster="bench", nodes=1, ranks_per_node=1, cores_per_node=1, walltime_s=600, data_path="/nowhere"
    )
    return RunSpec(
        campaign="bench",
        point_id=point_id(made),
        repeat=0,
        attempt=1,
        axes=made,
        placement=placement,
        harness_version="0",
    )


def torch_buffer() -> Any:
    """A DataLoader of one worker process, its buffer full."""
    from harness.pipelines.torch_memory import TorchMemory

    pipeline = TorchMemory(_Zeros(), 32, workers=1, prefetch=4)  # type: ignore[arg-type]
    next(pipeline.batches())
    return pipeline


class _Zeros:
    def __getitem__(self, index: int) -> Any:
        return np.zeros((32, 28, 28, 1), np.float32), np.zeros(32, np.int64)


def tf_data_buffer() -> Any:
    """tf.data with a prefetch buffer."""
    import tensorflow as tf

    from harness.comm.none import NoExchange
    from harness.pipelines.tf_stream import TfStream
    from harness.runtime.interfaces import Ranks, RunContext

    spec = spec_of(
        workload="lenet_mnist", framework="tensorflow", dataset="digits:mnist", pipeline="tf_memory", batch_size=32
    )
    ranks, clock = Ranks(0, 1, 0, 1, "here"), SystemClock()
    context = RunContext(spec, ranks, (0,), 1, NoExchange(), clock, "cpu", None, lambda kind, **fields: None)
    batch = tf.zeros((32, 28, 28, 1)), tf.zeros((32,), tf.int64)
    made = TfStream(context, lambda sieve: tf.data.Dataset.from_tensors(batch).repeat(), prefetch=4, samples=0)
    next(made.batches())
    return made


def keras_buffer() -> Any:
    """Keras's queue of ten batches behind one thread."""
    from harness.pipelines.keras_sequence import KerasSequence

    pipeline = KerasSequence(_Zeros(), 32, workers=1, multiprocess=False, max_queue_size=10)  # type: ignore[arg-type]
    next(pipeline.batches())
    return pipeline


class _Queue:
    """A TensorFlow queue of samples as ``tf_queue`` reads it."""

    def __init__(self) -> None:
        import tensorflow as tf

        self._queue = tf.queue.FIFOQueue(1000, [tf.float32], [(28, 28, 1)])
        self._queue.enqueue_many([tf.zeros((500, 28, 28, 1))])

    def occupancy(self) -> int:
        return int(self._queue.size()) // 32

    def close(self) -> None:
        return None


def buffer_row(name: str, make: Callable[[], Any], calls: int) -> Row:
    """Microseconds of one question, the median of ten blocks."""
    pipeline = make()
    blocks = []
    for _ in range(10):
        begin = time.perf_counter()
        for _ in range(calls):
            pipeline.occupancy()
        blocks.append((time.perf_counter() - begin) / calls * 1e6)
    pipeline.close()
    return Row(f"how full is the buffer: {name}", statistics.median(blocks), "µs", note="asked once per step")


def main() -> None:
    options = arguments(__doc__).parse_args()
    steps, repeats, calls = (20_000, 3, 100) if options.quick else (100_000, 7, 1000)
    rows = clock_rows(steps, repeats)
    rows.append(buffer_row("torch DataLoader", torch_buffer, calls))
    rows.append(buffer_row("tf.data", tf_data_buffer, calls))
    rows.append(buffer_row("Keras's queue", keras_buffer, calls))
    rows.append(buffer_row("a TensorFlow queue", _Queue, calls))
    finish(rows, options)


if __name__ == "__main__":
    main()
