"""Rates and their uncertainty. Pure functions of numpy arrays; nothing here draws random numbers.

A rate is images / elapsed time. Its logarithm is treated as Student-t distributed, so that ratios of rates get
their intervals by adding variances.

*Within a run* the standard error is that of the block bootstrap of the ratio estimator after prewhitening (Andrews &
Monahan, Econometrica 60 (1992) 953): a first-order autoregression takes the bulk of the steps' correlation away, the
circular block bootstrap (Politis & Romano 1992) of its residuals finds what is left, and the autoregression's gain is
put back. Blocks of the steps themselves, which fit into a short run, would be too short for its correlation. The
bootstrap is taken in closed form: for a (linearised) mean its variance over all circular blocks is known exactly
(Lahiri, Resampling Methods for Dependent Data, 2003, section 3.1), so resampling would only add noise and a seed. The
block length is chosen by Politis & White (2004) with the correction of Patton, Politis & White (2009). The ``arch``
package offers the same choice of block length but brings statsmodels along; the tests hold values computed with it.

The 95 % interval holds the truth 93 to 97 % of the time over 1,000 simulated runs whose steps' lag-1 correlation is
between 0 and 0.3 from 20 steps on, up to 0.6 from 30 on and up to 0.8 from 200 on; it is a little too wide for
alternating steps (-0.3) below 50 (tests/truth, benchmarks/interval_coverage.py). With fewer steps and more correlation
it is too narrow: such a run has fewer than :data:`MIN_INDEPENDENT_STEPS`, which is a finding, and there is none below
:data:`MIN_STEPS_FOR_INTERVAL`. Up to a correlation of 0.9 the interval holds the truth or that finding is given 92 % of
the time or more. All of this is for steps that are given; a window chosen from the steps themselves costs a few of the
hundred (docs/measuring.md).

*Between runs* the interval is Student's t on the logarithms of the repeats' rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from harness.analysis import arrays
from harness.analysis.arrays import Floats as Floats
from harness.analysis.arrays import total
from harness.analysis.windows import Windows

CONFIDENCE = 0.95
#: How often an effect is to be told apart after the repeats that are advised.
POWER = 0.8
#: Fewer steps than this tell too little about their own correlation: no interval is given.
MIN_STEPS_FOR_INTERVAL = 12
#: Steps that tell less than so many independent ones may give too narrow an interval.
MIN_INDEPENDENT_STEPS = 8.0


@dataclass(frozen=True)
class Estimate:
    """A positive quantity with its standard error on the logarithmic scale.

    ``n`` counts repeats where ``kind`` is ``between``, steps where it is ``within``, and ``df`` are the
    degrees of freedom behind ``se_log``. ``kind`` ``none``: a value without any measure of its uncertainty.
    """

    value: float
    se_log: float
    df: float
    n: int
    kind: Literal["within", "between", "ratio", "none"]
    #: lag-1 correlation of the steps' influence on the rate; known of ``within`` alone
    correlation: float = math.nan

    @property
    def independent_steps(self) -> float:
        """Independent steps that would tell as much as the ``n`` correlated ones: n (1 - phi) / (1 + phi)."""
        phi = max(self.correlation, 0.0)
        return self.n * (1 - phi) / (1 + phi)

    @property
    def low(self) -> float:
        return self.value * math.exp(-self._half_width_log)

    @property
    def high(self) -> float:
        return self.value * math.exp(self._half_width_log)

    @property
    def known(self) -> bool:
        """Whether an interval can be given at all."""
        return math.isfinite(self.value) and math.isfinite(self._half_width_log)

    @property
    def rests_on(self) -> Literal["between", "within", "none"]:
        """On what its interval rests: how runs differ; one run, on one side at least; or nothing."""
        once = self.kind == "within" or (self.kind == "ratio" and self.n == 1)
        return "none" if not self.known else "within" if once else "between"

    @cached_property
    def _half_width_log(self) -> float:
        if self.se_log == 0.0:
            return 0.0
        if not (math.isfinite(self.se_log) and self.df > 0):
            return math.nan
        width = arrays.t_quantile(0.5 + CONFIDENCE / 2, self.df) * self.se_log
        return min(width, _WIDEST_LOG)

    def differs_from(self, value: float) -> bool:
        """Whether ``value`` lies outside the interval; False where there is no interval."""
        return self.known and not self.low <= value <= self.high


#: Half an interval of twelve orders of magnitude: nothing is known, and its ends are still numbers.
_WIDEST_LOG = math.log(1e6)
UNKNOWN = Estimate(math.nan, math.nan, 0.0, 0, "none")


def rate(images: Floats, durations_s: Floats) -> float:
    """Images per second: the sum of images over the sum of durations; NaN for an empty window or no time."""
    elapsed_s = total(durations_s)
    return total(images) / elapsed_s if len(images) and elapsed_s > 0 else math.nan


def rates(images: Windows, durations_s: Windows) -> Floats:
    """As :func:`rate` for each of these windows, the same ones of both."""
    elapsed_s = durations_s.totals()
    known = (durations_s.counts > 0) & (elapsed_s > 0)
    found: Floats = np.divide(images.totals(), elapsed_s, out=np.full(len(known), math.nan), where=known)
    return found


def block_length(values: Floats) -> float:
    """As :func:`block_lengths` for one series."""
    return block_lengths(Windows.whole(values[None]))[0]


def block_lengths(series: Windows) -> list[float]:
    """Block lengths for the circular block bootstrap of the means of series, at least 1.

    Politis & White, Econometric Reviews 23 (2004) 53, with Patton, Politis & White, ibid. 28 (2009) 372:
    b = (2 G² / D)^(1/3) N^(1/3) with D = 4/3 g(0)², sums over a flat-top lag window of half-width M = 2m, where m
    is the lag after which K autocorrelations in a row are insignificant.
    """
    counts, lengths = series.counts, [1.0] * len(series.values)
    centred = series.of(series.values - series.means()[:, None])
    varies = counts >= 4
    if varies.any():
        reach, size = (of.of(np.abs(of.values)).maxima() for of in (centred, series))
        varies &= reach > 1e-12 * size
    rows = np.flatnonzero(varies)
    for row, length in zip(rows.tolist(), _block_lengths(centred.of_rows(rows)) if len(rows) else (), strict=True):
        lengths[row] = length
    return lengths


def _block_lengths(centred: Windows) -> Iterator[float]:
    counts = centred.counts.tolist()
    runs = [max(5, int(math.sqrt(math.log10(count)))) for count in counts]
    lags = [min(math.ceil(math.sqrt(c)) + 2 * run, c - 1) for c, run in zip(counts, runs, strict=True)]
    covariance = np.zeros((len(counts), max(lags) + 1))
    for row, values, most in zip(covariance, centred.each(), lags, strict=True):
        row[: most + 1] = arrays.autocovariances(values, most) / len(values)
    last = _last_significant_lags(covariance / covariance[:, :1], counts, lags, runs)
    halves = [
        min(max(2 * lag, 2), math.ceil(math.sqrt(count)) + run, most)
        for lag, count, run, most in zip(last, counts, runs, lags, strict=True)
    ]
    lag = np.arange(1, covariance.shape[1])
    window = np.minimum(np.maximum(2 * (1 - lag / np.array(halves)[:, None]), 0.0), 1.0)
    within = Windows(window, np.zeros(len(counts), dtype=np.int64), np.array(halves))
    curvature = within.of(window * lag * covariance[:, 1:]).totals().tolist()
    density = within.of(window * covariance[:, 1:]).totals().tolist()
    told = zip(counts, covariance[:, 0].tolist(), curvature, density, strict=True)
    return (_block_length(count, variance, 2 * g, variance + 2 * d) for count, variance, g, d in told)


def _block_length(count: int, variance: float, curvature: float, density: float) -> float:
    largest = math.ceil(min(3 * math.sqrt(count), count / 3))
    if density == 0.0:
        return float(largest)
    length = (2 * curvature**2 / (4 / 3 * density**2)) ** (1 / 3) * count ** (1 / 3)
    return float(min(max(length, 1.0), largest))


def _last_significant_lags(
    correlation: Floats, counts: Sequence[int], lags: Sequence[int], run_lengths: Sequence[int]
) -> Iterator[int]:
    """The smallest lag after which so many correlations in a row are insignificant, at least 1."""
    bound = np.array([2 * math.sqrt(math.log10(count) / count) for count in counts])
    small = np.abs(correlation[:, 1:]) < bound[:, None]
    for row, most, run_length in zip(small.tolist(), lags, run_lengths, strict=True):
        yield _last_significant_lag(row[:most], run_length)


def _last_significant_lag(small: list[bool], run_length: int) -> int:
    run = 0
    for lag, insignificant in enumerate(small):
        run = run + 1 if insignificant else 0
        if run == run_length:
            return max(lag - run_length + 1, 1)
    return max((lag + 1 for lag, insignificant in enumerate(small) if not insignificant), default=1)


def within_run(images: Floats, durations_s: Floats) -> Estimate:
    """Rate over the steps given, with the block-bootstrap standard error of images / elapsed.

    Args:
        images: images of each step, shape (steps,).
        durations_s: time from the end of the step before to the end of this one, shape (steps,).
    """
    return within_runs(Windows.whole(images[None]), Windows.whole(durations_s[None]))[0]


def within_runs(images: Windows, durations_s: Windows) -> list[Estimate]:
    """As :func:`within_run` over the windows of many runs, the same ones of both."""
    values, counts, sums = rates(images, durations_s), images.counts, images.totals().tolist()
    found = [Estimate(value, math.nan, 0.0, 0, "none") for value in values.tolist()]
    known = np.flatnonzero(np.isfinite(values) & (values > 0) & (counts >= MIN_STEPS_FOR_INTERVAL))
    if len(known):
        images, durations_s = images.of_rows(known), durations_s.of_rows(known)
        influence = images.of(images.values - values[known][:, None] * durations_s.values)
        for run, (variance, df, phi) in zip(known.tolist(), _variances_of_sums(influence), strict=True):
            error = math.sqrt(variance) / sums[run]
            found[run] = Estimate(found[run].value, error, df, int(counts[run]), "within", phi)
    return found


def _variances_of_sums(influence: Windows) -> Iterator[tuple[float, float, float]]:
    """Variances of the sums of correlated series with mean zero, their degrees of freedom, and the correlations.

    The logarithm of the variance is known to 2 L / n by the blocks of length L, and to 4 (1 + phi) / (1 - phi) / n by
    the correlation phi, whose own variance is (1 - phi²) / n; a chi-square of df degrees has 2 / df.
    """
    phis = [_correlation(series) for series in influence.each()]
    values = influence.values[:, 1:] - np.array(phis)[:, None] * influence.values[:, :-1]
    shorter = Windows(values, influence.begin, influence.end - 1)
    residuals = shorter.of(values - shorter.means()[:, None])
    sizes = residuals.counts.tolist()
    lengths = [min(math.ceil(b), size // 3) for b, size in zip(block_lengths(residuals), sizes, strict=True)]
    for phi, residual, length in zip(phis, residuals.each(), lengths, strict=True):
        count, blocks = len(residual) + 1, len(residual) / length
        sums = _circular_block_sums(residual, length)
        density = arrays.mean(sums * sums) / length * blocks / (blocks - 1)
        gain = max(phi, 0.0)
        df = max(count / (length + 2 * (1 + gain) / (1 - gain)), 1.0)
        yield count * density / (1 - phi) ** 2, df, phi


def _correlation(series: Floats) -> float:
    """Lag-1 correlation, corrected for its bias -(1 + 3 phi) / n (Kendall, Biometrika 41 (1954) 403), within reason."""
    square = float(series @ series)
    lagged = float(series[1:] @ series[:-1]) / square if square > 0 else 0.0
    return min(max(lagged + (1 + 3 * lagged) / len(series), -0.5), 0.97)


def _circular_block_sums(values: Floats, length: int) -> Floats:
    wrapped = np.concatenate([values, values[: length - 1]])
    cumulated = np.concatenate([[0.0], np.cumsum(wrapped)])
    sums: Floats = cumulated[length:] - cumulated[:-length]
    return sums


def between_runs(values: Sequence[float], within: Sequence[Estimate] = ()) -> Estimate:
    """Geometric mean of the repeats' values, with Student's t on their logarithms.

    Two repeats that agree by luck would give an interval narrower than either run knows itself; so the standard
    error is never taken smaller than the runs' own (``within``) allow, and the interval is the wider one of both: the
    runs' own alone would hold the truth of two repeats in 88 % of the cases, where they scatter twice as much as a run
    knows. One repeat keeps its own interval.
    """
    usable = [value for value in values if math.isfinite(value) and value > 0]
    if not usable:
        return UNKNOWN
    if len(usable) == 1:
        own = within[0] if len(within) == 1 else None
        return own if own is not None else Estimate(usable[0], math.nan, 0.0, 1, "none")
    logs = np.log(np.asarray(usable, dtype=np.float64))
    error = float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
    # equal values must give exactly no spread: their logarithms' mean may be off by a rounding
    error = 0.0 if len(set(usable)) == 1 else error
    df = float(len(logs) - 1)
    known = [estimate for estimate in within if estimate.known]
    if len(known) == len(usable):
        floor = math.sqrt(sum(estimate.se_log**2 for estimate in known)) / len(known)
        if floor > error:
            widest = arrays.t_quantile(0.5 + CONFIDENCE / 2, df) * error / floor
            error, df = floor, min(max(df, sum(e.df for e in known)), arrays.t_freedom(0.5 + CONFIDENCE / 2, widest))
    value = usable[0] if len(set(usable)) == 1 else float(math.exp(np.mean(logs)))
    return Estimate(value, error, df, len(usable), "between")


def ratio(numerator: Estimate, denominator: Estimate) -> Estimate:
    """Quotient of two independent estimates; variances of the logarithms add, degrees of freedom after Welch."""
    if not (math.isfinite(numerator.value) and denominator.value > 0):
        return UNKNOWN
    value = numerator.value / denominator.value
    a, b = numerator.se_log**2, denominator.se_log**2
    if not (math.isfinite(a) and math.isfinite(b)):
        return Estimate(value, math.nan, 0.0, 0, "none")
    parts = sum(v**2 / e.df for v, e in ((a, numerator), (b, denominator)) if v > 0)
    df = (a + b) ** 2 / parts if parts > 0 else math.inf
    return Estimate(value, math.sqrt(a + b), df, min(numerator.n, denominator.n), "ratio")


def scaled(estimate: Estimate, factor: float) -> Estimate:
    """The quantity times an exact positive number: its relative error stays."""
    return replace(estimate, value=estimate.value * factor)


def surely_unlike_one(ratios: Sequence[Estimate]) -> list[bool]:
    """Of each of many ratios whether it differs from 1, such that of ratios that are all 1 any is found to in 5 %.

    One by one, a twentieth of them would be. Holm's method (Scand. J. Statist. 6 (1979) 65): the least likely one must
    be as unlikely as 5 % over their number, the next one as 5 % over the number of those left, and so on. A ratio
    without an interval is not told apart from 1, and not counted.
    """
    chances = sorted((_chance_of_one(ratio), place) for place, ratio in enumerate(ratios) if ratio.known)
    found = [False] * len(ratios)
    for left, (chance, place) in zip(range(len(chances), 0, -1), chances, strict=True):
        if chance * left > 1 - CONFIDENCE:
            break
        found[place] = True
    return found


def _chance_of_one(ratio: Estimate) -> float:
    """How often a ratio that is 1 would be found as far from it as this one."""
    away = abs(math.log(ratio.value))
    if ratio.se_log == 0.0:
        return 0.0 if away > 0 else 1.0
    return arrays.t_beyond(away / ratio.se_log, ratio.df)


def spread(values: Sequence[float]) -> float:
    """(largest - smallest) / mean of the repeats; NaN for fewer than two."""
    usable = np.asarray([value for value in values if math.isfinite(value)], dtype=np.float64)
    return float(np.ptp(usable) / np.mean(usable)) if len(usable) > 1 and np.mean(usable) else math.nan


def repeats_to_resolve(estimate: Estimate, n: int) -> int | None:
    """Repeats per point after which a ratio as found leaves 1 outside its interval four times in five; None beyond 50.

    Supposes the same spread between runs as seen in ``n`` repeats of each of the two points.
    """
    if n < 2 or not estimate.known or estimate.se_log == 0.0 or estimate.value == 1.0:
        return None
    for more in range(n, 51):
        error, df = estimate.se_log * math.sqrt(n / more), 2 * (more - 1)
        # an effect just as large as half its interval would be told apart every other time
        seen = arrays.t_quantile(0.5 + CONFIDENCE / 2, df) + arrays.t_quantile(POWER, df)
        if abs(math.log(estimate.value)) > seen * error:
            return more
    return None


def as_floats(values: Any) -> Floats:
    """``values`` as a float array; None becomes NaN."""
    return np.asarray([math.nan if v is None else v for v in values], dtype=np.float64)
