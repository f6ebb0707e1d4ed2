"""Replay through the real step clock, events and analysis: reported values against closed forms, within 0.5 %.

The closed forms are of the steady state: what a scripted producer, a buffer and a consumer must give, by counting.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from runtime_support import spec_of

from harness.analysis import measure
from harness.analysis.evidence import RankEvidence, read_rank
from harness.analysis.measure import Measurement
from harness.comm.none import NoExchange
from harness.runtime.clock import VirtualClock
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Ranks, RunContext
from harness.runtime.stepclock import StepClock, warmup_steps
from harness.workloads import replay

BATCH = 32
TOLERANCE = 0.005


@dataclass(frozen=True)
class Case:
    """``options`` and ``axes`` of a replay; its truth: rate of batches per rank and wait per step, steady."""

    batches_per_s: float
    wait_s: float
    steps: int = 200
    world: int = 1
    axes: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        words = {**self.axes, **self.options, "steps": self.steps, "world": self.world}
        return ",".join(f"{key}={value}" for key, value in words.items())


def ran(directory: Path, case: Case) -> tuple[list[RankEvidence], Measurement]:
    ranks = []
    axes = {"prefetch": 2, **case.axes}
    spec = spec_of(batch_size=BATCH, steps_timed=case.steps, options=case.options, ranks_per_node=case.world, **axes)
    for rank in range(case.world):
        clock = VirtualClock()
        path = directory / f"events.r{rank}.jsonl"
        writer = EventWriter(path, clock)
        place = Ranks(rank, case.world, rank, case.world, "n")
        context = RunContext(spec, place, (0,), 1, NoExchange(), clock, "cpu", None, lambda kind, **fields: None)
        loop = StepClock(replay.build(context), replay.build_pipeline(context), clock, writer)
        loop.run(warmup_steps(spec.axes) + case.steps, spec.axes.batch_interval)
        writer.end(ok=True)
        ranks.append(read_rank(path, rank, []))
    measured = measure.measure([rank.steps for rank in ranks], warmup_steps(spec.axes), case.steps)
    assert measured is not None
    return ranks, measured


def steady_cases() -> list[Case]:
    """Workers × buffer × producer: the rate is that of the slower side, the wait what the consumer has left over."""
    cases = []
    for workers, prefetch, produce_s in itertools.product((0, 1, 2, 4), (1, 2, 8), (0.004, 0.02, 0.03)):
        consume_s = 0.01
        makers = min(workers, prefetch)  # the buffer's places bound what may be made at once
        period = max(consume_s, produce_s / makers) if makers else produce_s + consume_s
        axes = {"workers": workers, "prefetch": prefetch}
        options = {"produce_s": produce_s, "consume_s": consume_s, "first_step_s": 2.0}
        cases.append(Case(1 / period, period - consume_s, axes=axes, options=options))
    return cases


SPECIAL = [
    # compilation of 5 s fills a buffer of 16, which then drains within 18 steps
    Case(50.0, 0.01, axes={"workers": 1, "prefetch": 16}, options={"produce_s": 0.02, "first_step_s": 5.0}),
    # bursts: four quick batches, then a slow one; a buffer deep enough makes them one rate
    Case(
        1 / 0.02,
        0.01,
        steps=400,
        axes={"workers": 1, "prefetch": 8},
        options={"produce_script": [0.005, 0.005, 0.005, 0.005, 0.08]},
    ),
    # stragglers: every tenth batch takes 0.11 s instead of 0.02 s, and nothing can be made ahead of it
    Case(
        10 / 0.29,
        0.019,
        steps=400,
        axes={"workers": 1, "prefetch": 1},
        options={"produce_s": 0.02, "straggler_every": 10, "straggler_s": 0.09},
    ),
    # a batch for four steps: four consumptions hide one production
    Case(25.0, 0.0, axes={"workers": 1, "batch_interval": 4}, options={"produce_s": 0.03}),
    Case(1 / 0.06, 0.005, axes={"workers": 1, "batch_interval": 4}, options={"produce_s": 0.06}),
    # two ranks of unequal speed: the slower one's rate counts for both
    Case(1 / 0.015, 0.0, world=2, axes={"workers": 2}, options={"produce_s": 0.004, "lag_s": 0.005}),
    Case(1 / 0.02, 0.01, world=2, axes={"workers": 1}, options={"produce_s": 0.02}),
]


@pytest.mark.parametrize("case", [*steady_cases(), *SPECIAL], ids=lambda case: case.name)
def test_rate_and_waits(tmp_path: Path, case: Case) -> None:
    ranks, measured = ran(tmp_path, case)
    numbers = measured.numbers
    assert measured.window.steady, measured.window.reason
    assert numbers["images_per_s"] == pytest.approx(case.world * BATCH * case.batches_per_s, rel=TOLERANCE)
    waits = numbers["wait_share"] * numbers["step_mean_s"]
    if case.world == 1 or case.wait_s:
        assert waits == pytest.approx(case.wait_s, rel=TOLERANCE, abs=TOLERANCE * numbers["step_mean_s"])
    own = [rank.steps for rank in ranks]
    for steps in own:
        parts = sum(steps[f"{part}_s"] for part in ("wait", "copy", "compute", "exchange"))
        assert parts == pytest.approx(steps.durations_s, rel=1e-9)


def test_the_drain_is_counted_to_the_image(tmp_path: Path) -> None:
    """16 places are full when step 1 ends; each step takes one batch, and every second one is made anew."""
    case = SPECIAL[0]
    _, measured = ran(tmp_path, case)
    assert measured.numbers["occupancy_peak"] == 16
    assert measured.numbers["drained_images"] == pytest.approx(16 * BATCH, rel=0.02)
    # while it drains, the consumer runs at its own pace; a mean of rates would call that the throughput
    assert measured.numbers["mean_of_step_rates"] > 1.05 * measured.numbers["images_per_s"]


def test_a_buffer_deeper_than_the_run_is_never_steady(tmp_path: Path) -> None:
    """A buffer of 500 that compilation filled outlasts 100 steps: nothing that was seen can be sustained."""
    axes = {"workers": 1, "prefetch": 500, "steps_warmup": 1}
    options = {"produce_s": 0.02, "consume_s": 0.01, "first_step_s": 20.0}
    _, measured = ran(tmp_path, Case(0, 0, steps=100, axes=axes, options=options))
    assert measured.numbers["images_per_s"] == pytest.approx(BATCH / 0.01)
    assert not measured.window.steady
    assert "drains" in measured.window.reason


@pytest.mark.parametrize("produce_s", [0.02, 0.04, 0.08])
def test_the_knee_is_where_workers_keep_up(tmp_path: Path, produce_s: float) -> None:
    """The rate grows with workers up to produce_s / consume_s of them and not beyond."""
    rates = {}
    for workers in (1, 2, 4, 8, 16):
        (tmp_path / str(workers)).mkdir()
        axes = {"workers": workers, "prefetch": 2 * workers}
        options = {"produce_s": produce_s, "consume_s": 0.01}
        rates[workers] = ran(tmp_path / str(workers), Case(0, 0, steps=400, axes=axes, options=options))[1].numbers[
            "images_per_s"
        ]
    for workers, rate in rates.items():
        assert rate == pytest.approx(BATCH * min(workers / produce_s, 100.0), rel=TOLERANCE)
