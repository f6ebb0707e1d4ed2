"""Many series at once give what each gives alone, to the last bit."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis import arrays, measure, stats
from harness.analysis.measure import Wanted, measure_all
from harness.analysis.step_columns import Steps
from harness.analysis.windows import Windows, alike


@st.composite
def windows(draw: st.DrawFn) -> Windows:
    rows, length = draw(st.integers(1, 9)), draw(st.integers(1, 300))
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    begin = generator.integers(0, length + 1, rows)
    end = generator.integers(begin, length + 1)
    values = generator.choice([1e-3, 1.0, 1e6]) * generator.normal(size=(rows, length))
    return Windows(np.round(values, draw(st.sampled_from([0, 17]))), begin, end)


@settings(deadline=None)
@given(windows())
def test_sums_means_and_variances(made: Windows) -> None:
    each = made.each()
    assert made.totals().tolist() == [arrays.total(one) for one in each]
    np.testing.assert_array_equal(made.means(), [arrays.mean(one) for one in each])
    np.testing.assert_array_equal(made.variances(), [arrays.variance(one) if len(one) else math.nan for one in each])


@settings(deadline=None)
@given(windows())
def test_medians_maxima_and_order(made: Windows) -> None:
    full = made.of_rows(np.flatnonzero(made.counts > 0))
    each = full.each()
    assert full.medians().tolist() == [arrays.median(one) for one in each]
    assert full.maxima().tolist() == [one.max() for one in each]
    rising = [one.tolist() for one in full.of(full.rising()).each()]
    assert rising == [sorted(one) for one in each]


def test_the_median_with_nan_is_nan() -> None:
    values = np.array([[1.0, math.nan, 2.0, 3.0], [math.nan, 1.0, 2.0, 3.0]])
    medians = Windows(values, np.array([0, 1]), np.array([4, 4])).medians()
    assert math.isnan(medians[0]) and medians[1] == 2.0


def run_of(generator: np.random.Generator, count: int) -> Wanted:
    """Steps of some shape that real runs have: a slow start, a trend, a drain, stalls, batches used more than once."""
    ranks, kind, interval = generator.choice([1, 1, 2, 9]), generator.integers(5), generator.choice([1, 1, 4])
    step = np.arange(count) + (np.arange(count) > count // 2) * int(generator.random() < 0.2)
    levels = [np.full(count, math.nan), np.maximum(30.0 - np.arange(count), 0.0), np.full(count, 3.0)]
    occupancy = levels[generator.integers(3)]
    made = []
    for _ in range(ranks):
        durations = 0.1 * np.exp(0.05 * generator.normal(size=count))
        if kind == 1:
            durations[: generator.integers(count)] *= generator.uniform(0.3, 4.0)
        elif kind == 2:
            durations *= np.linspace(1.0, generator.uniform(0.8, 1.5), count)
        elif kind == 3:
            durations[::7] *= 20
        elif kind == 4:
            durations = np.full(count, 0.125)
        end = 2.0 + np.cumsum(durations)
        columns = {"begin_s": np.concatenate([[2.0], end[:-1]]), "end_s": end, "wait_s": 0.2 * durations}
        columns |= {"copy_s": 0.01 * durations, "compute_s": 0.7 * durations, "exchange_s": np.full(count, 1e-3)}
        columns |= {"fresh": 64.0 * interval * (np.arange(count) % interval == 0), "consumed": np.full(count, 64.0)}
        made.append(Steps(step, columns | {"occupancy": occupancy}))
    warmup = [None, 0, 5, count + 3][generator.integers(4)]
    return Wanted(made, warmup, int(generator.integers(1, 2 * count)))


def bits(measured: measure.Measurement | None) -> Any:
    """All that a measurement holds, NaN equal to NaN."""
    return measured and {name: repr(value) for name, value in dataclasses.asdict(measured).items()}


@pytest.mark.parametrize("seed", range(8))
def test_runs_measured_together_are_measured_as_each_alone(seed: int) -> None:
    generator = np.random.default_rng(seed)
    runs = [run_of(generator, int(count)) for count in generator.choice([1, 4, 20, 40, 63, 130, 200], size=40)]
    together = measure_all(runs)
    assert [bits(measured) for measured in together] == [bits(measure.measure(*run)) for run in runs]
    assert sum(measured is not None and measured.rate.known for measured in together) >= 5


def test_a_run_without_common_steps_is_not_measured() -> None:
    run = run_of(np.random.default_rng(0), 20)
    apart = Steps(run.ranks[0].step + 100, run.ranks[0].columns)
    found = measure_all([Wanted([], None, 1), Wanted([run.ranks[0], apart], 1, 5), run])
    assert found[:2] == [None, None] and found[2] is not None


def test_rates_of_windows() -> None:
    images, durations = np.full((3, 4), 8.0), np.array([[1.0, 2.0, 3.0, 4.0], [0.0] * 4, [1.0] * 4])
    begin, end = np.array([1, 0, 2]), np.array([3, 4, 2])
    found = stats.rates(Windows(images, begin, end), Windows(durations, begin, end))
    np.testing.assert_array_equal(found, [16 / 5, math.nan, math.nan])


def test_groups_of_like_lengths_leave_at_most_half_a_table_empty() -> None:
    counts = [200, 0, 1, 130, 129, 255, 256, 100_000, 3, 2]
    groups = alike(counts)
    assert sorted(place for group in groups for place in group) == [0, 2, 3, 4, 5, 6, 7, 8, 9]
    assert all(max(counts[p] for p in group) < 2 * min(counts[p] for p in group) for group in groups)
