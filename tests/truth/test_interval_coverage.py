"""Over 1,000 simulated runs of autocorrelated step times the 95 % interval holds the truth 93 to 97 % of the time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.analysis import stats
from harness.analysis.steady import find_all
from harness.analysis.windows import Windows

RUNS = 1000
MEAN_S = 0.1
IMAGES = 32.0


def series(generator: np.random.Generator, count: int, phi: float) -> np.ndarray:
    """(runs, count) stationary first-order autoregressive values with mean 0 and variance 1."""
    values = generator.normal(size=(RUNS, count))
    for index in range(1, count):
        values[:, index] = phi * values[:, index - 1] + math.sqrt(1 - phi**2) * values[:, index]
    return values


def coverage(durations: np.ndarray) -> float:
    estimates = [stats.within_run(np.full(len(run), IMAGES), run) for run in durations]
    return float(np.mean([e.low <= IMAGES / MEAN_S <= e.high for e in estimates]))


#: (lag-1 correlation, steps): what the interval is good for; docs/measuring.md says so.
DOMAIN = [(phi, count) for phi in (0.0, 0.3) for count in (20, 50, 200)]
DOMAIN += [(-0.3, 50), (-0.3, 200), (0.6, 30), (0.6, 50), (0.6, 200), (0.8, 200)]


@pytest.mark.parametrize(("phi", "count"), DOMAIN)
def test_of_normal_step_times(phi: float, count: int) -> None:
    generator = np.random.default_rng(20260101)
    assert 0.93 <= coverage(MEAN_S * (1 + 0.1 * series(generator, count, phi))) <= 0.97


@pytest.mark.parametrize(("phi", "count"), DOMAIN)
def test_of_step_times_with_a_long_tail(phi: float, count: int) -> None:
    """Log-normal, sigma 0.4: the longest of 200 steps takes about three times the mean."""
    generator = np.random.default_rng(20260102)
    assert 0.93 <= coverage(MEAN_S * np.exp(0.4 * series(generator, count, phi) - 0.08)) <= 0.97


@pytest.mark.parametrize(("law", "least"), [("normal", 0.92), ("long tail", 0.88)])
@pytest.mark.parametrize(("phi", "count"), [(0.0, 50), (0.0, 200), (0.3, 100), (0.6, 200)])
def test_of_the_window_chosen_from_the_steps(phi: float, count: int, law: str, least: float) -> None:
    """A window that begins where the steps scatter least takes a few of the hundred off; docs/measuring.md says so."""
    values = series(np.random.default_rng(20260106), count, phi)
    durations = MEAN_S * (1 + 0.1 * values if law == "normal" else np.exp(0.4 * values - 0.08))
    windows = find_all(Windows.whole(durations), np.full(durations.shape, math.nan), [1] * RUNS, [1.0] * RUNS)
    used = [run[window.begin :] for run, window in zip(durations, windows, strict=True)]
    estimates = [stats.within_run(np.full(len(run), IMAGES), run) for run in used]
    assert np.mean([e.low <= IMAGES / MEAN_S <= e.high for e in estimates]) >= least


def test_periodic_stragglers_are_within_reach() -> None:
    """Every tenth step takes five times as long, at a phase unknown to the interval."""
    generator = np.random.default_rng(3)
    phase = generator.integers(0, 10, size=(RUNS, 1))
    slow = (np.arange(105)[None, :] + phase) % 10 == 0
    durations = MEAN_S / 1.4 * np.where(slow, 5.0, 1.0)
    assert coverage(durations) >= 0.95


def test_too_few_steps_give_no_interval() -> None:
    durations = MEAN_S * np.linspace(0.9, 1.1, stats.MIN_STEPS_FOR_INTERVAL - 1)
    assert not stats.within_run(np.full(len(durations), IMAGES), durations).known


SHORT = [(0.6, 16), (0.6, 20), (0.8, 16), (0.8, 20), (0.8, 30), (0.9, 20), (0.9, 50)]


def told_or_covered(durations: np.ndarray) -> tuple[float, float]:
    """Shares of runs whose interval holds the truth or that are said to be too short, and that are said to be."""
    estimates = [stats.within_run(np.full(len(run), IMAGES), run) for run in durations]
    told = np.array([e.independent_steps < stats.MIN_INDEPENDENT_STEPS for e in estimates])
    held = np.array([e.low <= IMAGES / MEAN_S <= e.high for e in estimates])
    return float(np.mean(held | told)), float(np.mean(told))


@pytest.mark.parametrize(("phi", "count"), SHORT)
@pytest.mark.parametrize("law", ["normal", "long tail"])
def test_beyond_that_domain_too_few_steps_are_told(law: str, phi: float, count: int) -> None:
    values = series(np.random.default_rng(20260103), count, phi)
    durations = MEAN_S * (1 + 0.1 * values if law == "normal" else np.exp(0.4 * values - 0.08))
    right, told = told_or_covered(durations)
    assert right >= 0.93
    assert told > 0.5


@pytest.mark.parametrize("phi", [0.0, 0.3])
def test_a_run_of_enough_steps_is_left_in_peace(phi: float) -> None:
    values = series(np.random.default_rng(20260104), 50, phi)
    assert told_or_covered(MEAN_S * (1 + 0.1 * values))[1] < 0.01


@pytest.mark.parametrize("repeats", [2, 3, 5])
@pytest.mark.parametrize(
    "beyond", [0.0, 1.0, 2.0, 3.0], ids=lambda times: f"runs scatter {times:g} times what they know"
)
def test_of_repeats_that_scatter_more_than_a_run_knows(repeats: int, beyond: float) -> None:
    """At 0.95 and 4,000 trials the share is below 0.938 once in 4,000 times; wider is allowed."""
    generator = np.random.default_rng(20260105)
    error = 0.01
    own = error * np.sqrt(generator.chisquare(30, size=(4000, repeats)) / 30)
    rates = np.exp(math.hypot(1.0, beyond) * error * generator.normal(size=(4000, repeats)))
    held = 0
    for values, errors in zip(rates.tolist(), own.tolist(), strict=True):
        within = [stats.Estimate(value, e, math.inf, 1, "within") for value, e in zip(values, errors, strict=True)]
        estimate = stats.between_runs(values, within)
        held += estimate.low <= 1 <= estimate.high
    assert held / 4000 >= 0.938
