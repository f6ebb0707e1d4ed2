"""Every statistic against a truth known beforehand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as distributions

from harness.analysis import stats
from harness.analysis.stats import Estimate


def autoregressive(generator: np.random.Generator, count: int, phi: float) -> np.ndarray:
    """A stationary AR(1) series with mean 0 and variance 1."""
    series = np.empty(count)
    series[0] = generator.normal()
    noise = generator.normal(size=count) * math.sqrt(1 - phi**2)
    for index in range(1, count):
        series[index] = phi * series[index - 1] + noise[index]
    return series


def test_a_rate_is_images_over_time_not_a_mean_of_rates() -> None:
    images, durations = np.array([10.0, 10.0]), np.array([1.0, 4.0])
    assert stats.rate(images, durations) == pytest.approx(4.0)
    assert float(np.mean(images / durations)) == pytest.approx(6.25)


@pytest.mark.parametrize("durations", [[], [0.0, 0.0]])
def test_no_time_gives_no_rate(durations: list[float]) -> None:
    assert math.isnan(stats.rate(np.ones(len(durations)), np.array(durations)))


@pytest.mark.parametrize(
    ("phi", "count", "reference"),
    [
        (0.0, 100, 1.0),
        (0.5, 200, 7.997),
        (0.8, 500, 23.597),
    ],
)
def test_block_length_agrees_with_arch(phi: float, count: int, reference: float) -> None:
    """References: arch 8.0, ``optimal_block_length(x)["circular"]``, for this very series (0.645 there is 1 here).

    arch normalises autocorrelations a little differently, which can move the lag window by one or two lags.
    """
    generator = np.random.default_rng(7)
    noise = generator.normal(size=count)
    series = np.zeros(count)
    for index in range(count):
        series[index] = phi * (series[index - 1] if index else 0.0) + noise[index]
    assert stats.block_length(series) == pytest.approx(reference, rel=0.2)


def test_block_length_of_a_constant_series_is_one() -> None:
    assert stats.block_length(np.full(50, 0.1)) == 1.0


def test_block_bootstrap_variance_in_closed_form_is_that_of_resampling() -> None:
    generator = np.random.default_rng(3)
    values = autoregressive(generator, 60, 0.5)
    values -= values.mean()
    length, count = 6, 60
    sums = stats._circular_block_sums(values, length)
    wrapped = np.concatenate([values, values])
    assert sums == pytest.approx([wrapped[start : start + length].sum() for start in range(count)])
    starts = generator.integers(0, count, size=(20_000, count // length))
    resampled = sums[starts].sum(axis=1)
    assert count / length * np.mean(sums**2) == pytest.approx(float(np.var(resampled)), rel=0.05)


@pytest.mark.parametrize(("phi", "count"), [(0.0, 20), (0.0, 200), (0.5, 50), (0.5, 200), (0.8, 200)])
def test_coverage_of_the_interval_within_a_run(phi: float, count: int) -> None:
    """95 % intervals hold the truth in 95 % of 400 runs, give or take 3.5 standard errors of that share."""
    generator = np.random.default_rng(11)
    runs, hits = 400, 0
    for _ in range(runs):
        durations = 0.1 * (1 + 0.1 * autoregressive(generator, count, phi))
        estimate = stats.within_run(np.full(count, 32.0), durations)
        hits += estimate.low <= 320.0 <= estimate.high
    assert hits / runs == pytest.approx(0.95, abs=3.5 * math.sqrt(0.95 * 0.05 / runs))


def test_coverage_of_the_interval_between_runs_and_of_the_speedup() -> None:
    generator = np.random.default_rng(5)
    trials, hits, speedup_hits = 2000, 0, 0
    for _ in range(trials):
        slow = stats.between_runs(list(100 * np.exp(0.03 * generator.normal(size=3))))
        fast = stats.between_runs(list(170 * np.exp(0.03 * generator.normal(size=3))))
        hits += slow.low <= 100 <= slow.high
        quotient = stats.ratio(fast, slow)
        speedup_hits += quotient.low <= 1.7 <= quotient.high
    error = math.sqrt(0.95 * 0.05 / trials)
    assert hits / trials == pytest.approx(0.95, abs=3.5 * error)
    assert speedup_hits / trials >= 0.95 - 3.5 * error


def test_exact_steps_have_an_interval_without_width() -> None:
    estimate = stats.within_run(np.full(50, 32.0), np.full(50, 0.25))
    assert (estimate.low, estimate.value, estimate.high) == pytest.approx((128.0, 128.0, 128.0))


def test_few_steps_have_no_interval() -> None:
    estimate = stats.within_run(np.ones(7), np.full(7, 0.5))
    assert estimate.value == pytest.approx(2.0)
    assert not estimate.known
    assert math.isnan(estimate.low)


def test_two_lucky_repeats_are_not_surer_than_their_own_steps() -> None:
    own = Estimate(100.0, 0.05, 20.0, 40, "within")
    between = stats.between_runs([100.0, 100.0001], [own, own])
    assert between.high / between.value > 1.05


def test_two_repeats_have_a_wide_interval() -> None:
    estimate = stats.between_runs([98.0, 102.0])
    # t(0.975, 1) = 12.706; standard error of the logarithms' mean = ln(102/98) / 2
    assert estimate.high == pytest.approx(math.sqrt(98 * 102) * math.exp(12.7062 * math.log(102 / 98) / 2), rel=1e-4)


def test_one_repeat_keeps_its_own_interval() -> None:
    own = Estimate(100.0, 0.01, 20.0, 40, "within")
    assert stats.between_runs([100.0], [own]) is own
    assert not stats.between_runs([100.0]).known


def test_no_repeat_is_unknown() -> None:
    assert math.isnan(stats.between_runs([math.nan]).value)


def test_ratio_adds_variances() -> None:
    quotient = stats.ratio(Estimate(200.0, 0.03, 4.0, 5, "between"), Estimate(100.0, 0.04, 4.0, 5, "between"))
    assert quotient.value == pytest.approx(2.0)
    assert quotient.se_log == pytest.approx(0.05)
    # Welch: (9e-4 + 16e-4)^2 / (81e-8 / 4 + 256e-8 / 4)
    assert quotient.df == pytest.approx(25**2 / (81 / 4 + 256 / 4))


def test_ratio_of_unknowns_has_a_value_but_no_interval() -> None:
    quotient = stats.ratio(Estimate(200.0, math.nan, 0.0, 1, "none"), Estimate(100.0, 0.04, 4.0, 5, "between"))
    assert quotient.value == pytest.approx(2.0)
    assert not quotient.known
    assert not quotient.differs_from(1.0)


def repeated(generator: np.random.Generator, value: float, scatter: float) -> Estimate:
    return stats.between_runs(list(value * np.exp(scatter * generator.normal(size=3))))


def test_of_many_ratios_without_a_change_none_is_found_to_have_one() -> None:
    """One by one, 34 % of the families would have one; at 5 %, more than 35 of 400 are seen once in 2,000 times."""
    generator = np.random.default_rng(8)
    families, alone, together = 400, 0, 0
    for _ in range(families):
        ratios = [stats.ratio(*(repeated(generator, 100.0, 0.1) for _ in range(2))) for _ in range(10)]
        alone += any(ratio.differs_from(1.0) for ratio in ratios)
        together += any(stats.surely_unlike_one(ratios))
    assert alone > 80
    assert together <= 35


def test_of_many_ratios_those_with_a_change_are_found() -> None:
    generator = np.random.default_rng(9)
    values = [100.0, 50.0, 100.0, 200.0, 100.0]
    ratios = [stats.ratio(repeated(generator, v, 0.02), repeated(generator, 100.0, 0.02)) for v in values]
    assert stats.surely_unlike_one(ratios) == [False, True, False, True, False]


def test_holms_steps() -> None:
    def ratio(chance: float) -> Estimate:
        return Estimate(math.exp(float(distributions.norm.isf(chance / 2))), 1.0, math.inf, 3, "ratio")

    assert stats.surely_unlike_one([ratio(0.04), ratio(0.012), ratio(0.02)]) == [True, True, True]
    assert stats.surely_unlike_one([ratio(0.03), ratio(0.012), ratio(0.026)]) == [False, True, False]
    assert stats.surely_unlike_one([ratio(0.017), ratio(0.018)]) == [True, True]
    assert stats.surely_unlike_one([ratio(0.026), ratio(0.026)]) == [False, False]
    exact = Estimate(1.1, 0.0, math.inf, 3, "ratio")
    assert stats.surely_unlike_one([exact, stats.UNKNOWN, Estimate(1.0, 0.0, math.inf, 3, "ratio")]) == [
        True,
        False,
        False,
    ]
    assert stats.surely_unlike_one([]) == []


def test_spread() -> None:
    assert stats.spread([90.0, 100.0, 110.0]) == pytest.approx(0.2)
    assert math.isnan(stats.spread([90.0]))


def test_repeats_to_resolve_shrinks_with_the_effect() -> None:
    def found(speedup: float) -> int | None:
        return stats.repeats_to_resolve(Estimate(speedup, 0.05, 2.0, 2, "ratio"), 2)

    assert found(1.02) is None
    many, few = found(1.10), found(1.3)
    assert many is not None and few is not None and many > few >= 2


@pytest.mark.parametrize("effect", [0.05, 0.1, 0.2])
def test_the_repeats_advised_tell_four_times_in_five(effect: float) -> None:
    """Of 500 pairs at a power of 0.8 fewer than 370 tell once in 2,000 times; at a half, as many never do."""
    seen = stats.repeats_to_resolve(Estimate(math.exp(effect), 0.05 * math.sqrt(2 / 3), 4.0, 3, "ratio"), 3)
    assert seen is not None
    generator = np.random.default_rng(11)
    told = 0
    for _ in range(500):
        pair = [stats.between_runs(list(v * np.exp(0.05 * generator.normal(size=seen)))) for v in (math.exp(effect), 1)]
        told += stats.ratio(*pair).differs_from(1.0)
    assert told >= 370
