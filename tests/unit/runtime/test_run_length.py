"""Runs as long as their interval takes: when they stop, and that all ranks stop at the same step."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
from runtime_support import events, of_kind, run_point, spec_of, step_column, write_point

from harness.runtime.run_length import BATCHES, RunLength, half_width, joint, last_moment_s


def ends_of(durations: list[float]) -> list[float]:
    total, ends = 0.0, []
    for duration in durations:
        total += duration
        ends.append(total)
    return ends


def test_the_half_width_is_that_of_batch_means() -> None:
    """Batches whose means are 1 and 3 in turn: mean 2, standard deviation of 20 means sqrt(20/19)."""
    ends = ends_of([7.0] + [1.0] * 7 + [1.0, 3.0] * (BATCHES // 2))
    expected = 2.093 * math.sqrt(BATCHES / (BATCHES - 1)) / math.sqrt(BATCHES) / 2
    assert half_width(ends) == pytest.approx(expected)


def test_constant_steps_are_known_at_once_and_few_steps_never() -> None:
    assert half_width(ends_of([0.5] * 40)) == pytest.approx(0.0, abs=1e-12)
    assert half_width(ends_of([0.5] * 20)) == math.inf
    assert half_width([]) == math.inf


def timed_steps(durations: list[float], least: int, wanted: float, until_s: float) -> tuple[int, str]:
    length = RunLength(least, wanted, until_s)
    for number, end in enumerate(ends_of(durations), 1):
        length.add(end)
        if length.due(number) and (verdict := length.verdict()) != "more":
            return number, verdict
    return len(durations), "more"


def test_noisier_steps_are_timed_longer() -> None:
    generator = random.Random(1)
    quiet = [generator.gauss(0.1, 0.01) for _ in range(4000)]
    noisy = [generator.gauss(0.1, 0.02) for _ in range(4000)]
    few, verdict = timed_steps(quiet, 50, 0.01, math.inf)
    many, other = timed_steps(noisy, 50, 0.01, math.inf)
    assert (verdict, other) == ("enough", "enough")
    assert 50 <= few < many / 2


def test_the_walltime_ends_what_is_not_known_yet() -> None:
    generator = random.Random(1)
    noisy = [generator.gauss(0.1, 0.02) for _ in range(4000)]
    steps, verdict = timed_steps(noisy, 50, 0.0001, until_s=20.0)
    assert verdict == "late"
    # the next look would have come after the limit, this one came before it
    assert steps * 0.1 < 20.0 < steps * 0.1 * 1.4


def test_without_a_wish_the_least_is_all() -> None:
    assert timed_steps([0.1] * 100, 30, None, 0.0) == (30, "enough")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verdicts", "common"),
    [
        (["enough"] * 2, "enough"),
        (["enough", "more"], "more"),
        (["more", "late"], "late"),
        (["enough", "late"], "late"),
    ],
)
def test_all_ranks_follow_one_verdict(verdicts: list[str], common: str) -> None:
    assert joint(verdicts) == common


def test_time_is_left_to_end_the_job() -> None:
    assert last_moment_s(3600, 100) == 3600 - 100 - 180
    assert last_moment_s(60, 10) == 30


@pytest.mark.mpi
def test_two_ranks_of_unequal_noise_stop_together(tmp_path: Path) -> None:
    options: dict[str, Any] = {"produce_s": 0.0, "consume_script": [0.01, 0.012, 0.008, 0.03, 0.01, 0.01, 0.009]}
    axes = {"ranks_per_node": 2, "cpu_cores": 2, "comm": "mpi4py", "steps_timed": 25, "interval_percent": 5.0}
    done = run_point(write_point(tmp_path, spec_of(**axes, steps_warmup=3, options=options)), ranks=2)
    assert done.returncode == 0, done.stderr
    both = [events(tmp_path, rank) for rank in (0, 1)]
    counts = [len(step_column(records, "step")) for records in both]
    assert counts[0] == counts[1] > 28
    [length] = of_kind(both[0], "length")
    assert length["verdict"] == "enough"
    assert length["reached_percent"] <= 5.0
