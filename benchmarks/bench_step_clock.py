"""What the instrumentation costs: the step clock's loop against a bare one, both around a step that does nothing.

    python benchmarks/bench_step_clock.py

Prints microseconds per step and what they are of steps of usual length. The aim is under 1 %. Steps that do nothing
give the upper bound: events are then written every thousand steps, with real steps once a second.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness.runtime.clock import SystemClock
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Batch, ModelFacts, StepOutcome
from harness.runtime.stepclock import StepClock

STEPS = 100_000
REPEATS = 5
STEP_LENGTHS_MS = (1, 10, 100)


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


def bare_s() -> float:
    """Seconds per step of the loop that a user would write."""
    session, batches = Nothing(), Endless().batches()
    begin = time.perf_counter()
    for _ in range(STEPS):
        session.step(session.to_device(next(batches)))
    return (time.perf_counter() - begin) / STEPS


def clocked_s() -> float:
    """Seconds per step of the same under the step clock, events written to a temporary directory."""
    with tempfile.TemporaryDirectory() as directory:
        clock = SystemClock()
        writer = EventWriter(Path(directory, "events.r0.jsonl"), clock)
        loop = StepClock(Nothing(), Endless(), clock, writer)
        begin = time.perf_counter()
        loop.run(STEPS, batch_interval=1)
        elapsed = time.perf_counter() - begin
        writer.end(ok=True)
    return elapsed / STEPS


def main() -> None:
    # the least of several: whatever else the machine does only adds
    bare = min(bare_s() for _ in range(REPEATS))
    clocked = min(clocked_s() for _ in range(REPEATS))
    cost = clocked - bare
    print(f"bare loop {bare * 1e6:.2f} µs per step, step clock {clocked * 1e6:.2f} µs, cost {cost * 1e6:.2f} µs")
    for length_ms in STEP_LENGTHS_MS:
        print(f"  of a step of {length_ms:3d} ms: {cost / (length_ms / 1e3):.3%}")


if __name__ == "__main__":
    main()
