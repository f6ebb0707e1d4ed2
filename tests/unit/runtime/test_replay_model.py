"""Replay against an independent simulation of its model, and against closed forms."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime_support import events, spec_of, step_column

from harness.comm.none import NoExchange
from harness.errors import UserError
from harness.model.job import RunSpec
from harness.runtime.clock import SystemClock, VirtualClock
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Clock, Ranks, RunContext
from harness.runtime.stepclock import StepClock
from harness.workloads import replay

ONE = Ranks(rank=0, world=1, local_rank=0, local_world=1, node="n")
Durations = Callable[[int], int]


class Factory:
    """The model told as a queueing system in whole milliseconds: workers, credits, a shelf, one customer.

    A worker needs a credit to begin. Taking a batch gives one back; where there are no places, asking gives one.
    The shelf hands out batches in their order. Nothing is computed ahead of its time.
    """

    def __init__(self, produce_ms: Durations, workers: int, prefetch: int):
        self.produce_ms, self.idle, self.credits, self.on_demand = produce_ms, workers, prefetch, prefetch == 0
        self.now = self.begun = self.taken = 0
        self.making: list[tuple[int, int]] = []
        self.shelf: set[int] = set()
        self._hire()

    def _hire(self) -> None:
        while self.idle and self.credits:
            self.idle, self.credits = self.idle - 1, self.credits - 1
            heapq.heappush(self.making, (self.now + self.produce_ms(self.begun), self.begun))
            self.begun += 1

    def pass_until(self, time: int) -> None:
        while self.making and self.making[0][0] <= time:
            self.now, made = heapq.heappop(self.making)
            self.shelf.add(made)
            self.idle += 1
            self._hire()
        self.now = time

    def take(self) -> None:
        if self.on_demand:
            self.credits += 1
            self._hire()
        while self.taken not in self.shelf:
            self.pass_until(self.making[0][0])
        self.shelf.remove(self.taken)
        self.taken += 1
        if not self.on_demand:
            self.credits += 1
            self._hire()


def simulate(
    produce_ms: Durations, consume_ms: Durations, workers: int, prefetch: int, steps: int, interval: int
) -> list[tuple[int, int, int, int]]:
    """(begin, wait, end, occupancy) of each step, in milliseconds and batches."""
    factory, rows = Factory(produce_ms, workers, prefetch), []
    for step in range(steps):
        factory.pass_until(factory.now)  # what takes no time is there at once
        begin, occupancy = factory.now, len(factory.shelf)
        if step % interval == 0:
            factory.take()
        wait = factory.now - begin
        factory.pass_until(factory.now + consume_ms(step))
        rows.append((begin, wait, factory.now, occupancy))
    return rows


def context_of(spec: RunSpec, clock: Clock, ranks: Ranks = ONE) -> RunContext:
    return RunContext(
        spec=spec,
        ranks=ranks,
        cpus=(0,),
        threads=1,
        exchange=NoExchange(),
        clock=clock,
        device="cpu",
        data_path=None,
        note=lambda kind, **fields: None,
    )


def replayed(directory: Path, steps: int, clock: Clock | None = None, ranks: Ranks = ONE, **axes: Any) -> list[dict]:
    """The events of the real step clock over the real replay."""
    spec = spec_of(**axes)
    clock = clock or VirtualClock()
    number = len(list(directory.iterdir()))  # several runs in one directory
    writer = EventWriter(directory / f"events.r{number}.jsonl", clock)
    context = context_of(spec, clock, ranks)
    pipeline = replay.build_pipeline(context)
    try:
        StepClock(replay.build(context), pipeline, clock, writer).run(steps, spec.axes.batch_interval)
    finally:
        pipeline.close()
        writer.end(ok=True)
    return events(directory, number)


def ms(values: list[float]) -> list[int]:
    """Exact: the virtual clock counts nanoseconds."""
    rounded = [round(value * 1000) for value in values]
    assert values == [value / 1000 for value in rounded]
    return rounded


times_ms = st.lists(st.integers(0, 40), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(
    produce=times_ms,
    consume=times_ms,
    workers=st.integers(1, 4),
    prefetch=st.integers(0, 6),
    interval=st.integers(1, 3),
    first=st.integers(0, 300),
    every=st.integers(0, 4),
)
def test_every_step_is_as_simulated(
    tmp_path_factory: pytest.TempPathFactory,
    produce: list[int],
    consume: list[int],
    workers: int,
    prefetch: int,
    interval: int,
    first: int,
    every: int,
) -> None:
    options = {
        "produce_script": [value / 1000 for value in produce],
        "consume_script": [value / 1000 for value in consume],
        "first_step_s": first / 1000,
        "straggler_every": every,
        "straggler_s": 0.055,
    }
    records = replayed(
        tmp_path_factory.mktemp("replay"),
        30,
        workers=workers,
        prefetch=prefetch,
        batch_interval=interval,
        options=options,
    )
    truth = simulate(
        lambda i: produce[i % len(produce)] + (55 if every and (i + 1) % every == 0 else 0),
        lambda i: consume[i % len(consume)] + (first if i == 0 else 0),
        workers,
        prefetch,
        30,
        interval,
    )
    begin, wait, end, occupancy = (list(column) for column in zip(*truth, strict=True))
    assert ms(step_column(records, "begin_s")) == begin
    assert ms(step_column(records, "wait_s")) == wait
    assert ms(step_column(records, "end_s")) == end
    assert step_column(records, "occupancy") == occupancy


@pytest.mark.parametrize(
    ("workers", "prefetch", "produce_s", "consume_s", "period_s"),
    [
        (1, 1, 0.030, 0.010, 0.030),  # producer-bound
        (1, 8, 0.030, 0.010, 0.030),  # deeper buffers do not make a slow producer faster
        (4, 8, 0.030, 0.010, 0.010),  # consumer-bound beyond the knee at 3 workers
        (2, 8, 0.030, 0.010, 0.015),  # two share the work
        (4, 2, 0.030, 0.010, 0.015),  # places bound what may be made at once
        (3, 0, 0.030, 0.010, 0.040),  # nothing ahead: the times add up
        (0, None, 0.030, 0.010, 0.040),
    ],
)
def test_steady_period_is_the_closed_form(
    tmp_path: Path, workers: int, prefetch: int | None, produce_s: float, consume_s: float, period_s: float
) -> None:
    options = {"produce_s": produce_s, "consume_s": consume_s}
    end = step_column(replayed(tmp_path, 80, workers=workers, prefetch=prefetch, options=options), "end_s")
    assert end[79] - end[19] == pytest.approx(60 * period_s, abs=1e-12)


def test_full_buffer_drains_after_a_slow_first_step(tmp_path: Path) -> None:
    """One producer at 30 ms, eight places filled during a first step of 1 s, consumer at 10 ms.

    Batch 0 is ready at 0.03, so the first step ends at 1.04 with eight ready; each step then takes one while a third
    of one arrives. Without waiting: steps 1 … 11; batch 12, the fourth made since, is ready at 1.16.
    """
    options = {"produce_s": 0.03, "consume_s": 0.01, "first_step_s": 1.0}
    records = replayed(tmp_path, 20, workers=1, prefetch=8, options=options)
    occupancy, wait = step_column(records, "occupancy"), step_column(records, "wait_s")
    assert occupancy[:13] == [0, 8, 7, 6, 6, 5, 4, 4, 3, 2, 2, 1, 0]
    assert ms(wait)[:14] == [30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 20]
    end = step_column(records, "end_s")
    assert ms([end[0], end[11], end[19]]) == [1040, 1150, 1170 + 7 * 30]


def test_repeated_batches_are_consumed_but_not_fresh(tmp_path: Path) -> None:
    records = replayed(tmp_path, 7, batch_size=16, batch_interval=3, workers=1, options={"produce_s": 0.05})
    assert step_column(records, "fresh") == [16, 0, 0, 16, 0, 0, 16]
    assert step_column(records, "consumed") == [16] * 7
    # a batch in 0.05, three steps of 0.01: 0.02 of each round is waited
    assert ms(step_column(records, "wait_s")) == [50, 0, 0, 20, 0, 0, 20]


def test_only_the_last_rank_lags_and_fails(tmp_path: Path) -> None:
    options = {"produce_s": 0.0, "consume_s": 0.01, "lag_s": 0.03, "fail_at_step": 2}
    ranks = [Ranks(rank, 2, rank, 2, "n") for rank in (0, 1)]
    first = replayed(tmp_path, 4, ranks=ranks[0], options=options, ranks_per_node=2)
    assert ms(step_column(first, "compute_s")) == [10] * 4
    with pytest.raises(RuntimeError, match="scripted failure at step 2"):
        replayed(tmp_path, 4, ranks=ranks[1], options=options, ranks_per_node=2)


@pytest.mark.parametrize(
    "options", [{"produce_s": -0.1}, {"consume_script": [0.1, "x"]}, {"first_step_s": float("inf")}, {"lag_s": True}]
)
def test_impossible_times_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"option {next(iter(options))}: .* write seconds"):
        replay.script_of(spec_of(options=options).axes)


@pytest.mark.parametrize(("workers", "prefetch"), [(0, None), (1, 0), (1, 2), (3, 4)])
def test_threads_on_the_real_clock_follow_the_same_rules(tmp_path: Path, workers: int, prefetch: int | None) -> None:
    """Real time only bounds from below: no step is shorter than the model says, and counts are equal."""
    options = {"produce_s": 0.004, "consume_s": 0.002, "clock": "real"}
    axes: dict[str, Any] = {"workers": workers, "prefetch": prefetch, "options": options}
    real = replayed(tmp_path, 10, clock=SystemClock(), **axes)
    ideal = replayed(tmp_path, 10, **axes)
    assert step_column(real, "fresh") == step_column(ideal, "fresh") == [32] * 10
    elapsed = step_column(real, "end_s")[9] - step_column(real, "begin_s")[0]
    # the real workers begin before the first step asks; on a busy machine long enough to have filled all places
    ahead_s = (prefetch or 0) * options["produce_s"]
    assert elapsed >= step_column(ideal, "end_s")[9] - ahead_s - 1e-6
    most = {0: None, 1: prefetch, 3: 4}[workers]
    assert all(ready is None if most is None else ready <= most for ready in step_column(real, "occupancy"))
