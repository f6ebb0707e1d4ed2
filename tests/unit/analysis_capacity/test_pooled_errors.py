"""Errors of points drawn towards what is usual among them, against a scatter known beforehand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from harness.analysis.capacity import Observation, pooled
from harness.analysis.capacity_fit import Fit, Model, with_scatter_of_runs
from harness.analysis.capacity_lanes import Form, Setting
from harness.analysis.stats import between_runs


def observed(generator: np.random.Generator, scatters: Sequence[float], runs: int) -> list[Observation]:
    """A point for each scatter, whose runs are off by it."""
    rates = [100 * np.exp(scatter * generator.normal(size=runs)) for scatter in scatters]
    estimates = [between_runs(values.tolist()) for values in rates]
    return [Observation(Setting(workers=w), e.value, e.se_log, runs=runs) for w, e in enumerate(estimates)]


def errors(observations: Sequence[Observation]) -> np.ndarray:
    return np.array([o.se_log for o in observations])


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_errors_come_nearer_to_the_truth(runs: int) -> None:
    """Of 200 campaigns of seven points; on a logarithmic scale, since a factor of two either way is as bad."""
    generator = np.random.default_rng(runs)
    truth = 0.04 / math.sqrt(runs)
    own, together = [], []
    for _ in range(200):
        seen = observed(generator, [0.04] * 7, runs)
        own.append(np.log(errors(seen) / truth))
        together.append(np.log(errors(pooled(seen)) / truth))
    assert np.std(together) < 0.6 * np.std(own)
    assert abs(np.mean(together)) < 0.15


def test_one_disturbed_point_keeps_its_error_and_hardly_moves_the_others() -> None:
    generator = np.random.default_rng(5)
    ratios = []
    for _ in range(200):
        seen = observed(generator, [0.02] * 7, 3)
        disturbed = observed(generator, [0.5], 3)
        alone, among = errors(pooled(seen)), errors(pooled([*seen, *disturbed]))
        ratios.append(among[:7] / alone)
        assert among[7] >= math.sqrt(2 / 6) * disturbed[0].se_log
    assert np.median(ratios) < 2.3


def test_a_point_run_once_scatters_as_is_usual() -> None:
    usual = [Observation(Setting(workers=w), 100.0, 0.03, runs=4) for w in range(3)]
    *_, alone = pooled([*usual, Observation(Setting(workers=9), 100.0, 0.002, runs=1)])
    *_, worse = pooled([*usual, Observation(Setting(workers=9), 100.0, 0.2, runs=1)])
    *_, unknown = pooled([*usual, Observation(Setting(workers=9), 100.0, math.nan, runs=1)])
    assert alone.se_log == unknown.se_log > 2 * 0.03
    assert worse.se_log == 0.2


def test_one_repeated_point_tells_of_those_run_once_as_far_as_its_few_repeats_can() -> None:
    """Student's t with two degrees of freedom is at 4.30 where the normal law is at 1.96."""
    repeated = Observation(Setting(workers=1), 100.0, 0.03, runs=3)
    first, *once = pooled([repeated, *(Observation(Setting(workers=w), 100.0, 0.002, runs=1) for w in (2, 4))])
    assert first.se_log == pytest.approx(0.03)
    assert [o.se_log for o in once] == pytest.approx([0.03 * math.sqrt(3) * 4.3027 / 1.95996] * 2, rel=1e-4)


@pytest.mark.parametrize(
    "seen",
    [
        [Observation(Setting(workers=w), 100.0, 0.01 * w, runs=1) for w in (1, 2, 3)],
        [Observation(Setting(workers=w), 100.0, 0.0, runs=3) for w in (1, 2, 3)],
        [Observation(Setting(workers=w), 100.0, 0.01 * w) for w in (1, 2, 3)],
    ],
    ids=["run once each", "exact", "of unknown runs"],
)
def test_where_nothing_is_known_of_what_is_usual_errors_stay(seen: list[Observation]) -> None:
    assert list(pooled(seen)) == seen


@pytest.mark.parametrize(("runs", "widened"), [(1, True), (3, False)])
def test_where_no_point_was_repeated_fits_scatter_as_points_left_out_are_missed(runs: int, widened: bool) -> None:
    seen = [Observation(Setting(workers=w), float(w), 0.002, runs=runs) for w in (1, 2, 4)]
    fit = Fit(Form(), np.zeros(1), 0.0, 1.0, np.zeros(3))
    other = Fit(Form(), np.ones(1), 1.0, 50.0, np.zeros(3))
    found = with_scatter_of_runs(Model(fit, (fit, other), np.array([0.05, -0.05, 0.05])), seen)
    assert found.best is found.believed[0]
    missed = 1.4826 * math.log(1.05) / math.hypot(0.002, 0.01)
    assert found.best.scale == (pytest.approx(missed) if widened else 1.0)
    assert found.believed[1].scale == 50.0
