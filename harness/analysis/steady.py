"""Where a run's steady state begins. Pure functions of numpy arrays.

The steps of a run begin with a warm-up (compilation, autotuning), and while step 1 compiled, the input pipeline
filled its buffer; the steps that follow live on that store and are faster than the pipeline can sustain. A steady
window begins where neither the step time nor the buffer's occupancy trends any more:

1. *Warm-up and step time.* MSER (White, Simulation 69 (1997) 323) finds the truncation that minimises the squared
   standard error of the mean of what remains. The series is clipped first at :data:`CLIP` robust standard deviations
   of its second half, so that one straggler late in the run does not decide. MSER-5, which first takes means of
   five, is not used: a slow first step and the quick ones after it may cancel in such a mean.
2. *Buffer.* The same on the occupancy. Its noise is small against a drain, so the later of both truncations counts.
3. *Check.* What remains is steady where (a) the clipped step times have no linear trend that surely exceeds
   :data:`DRIFT_TOLERANCE` over the window, (b) the halves' mean step times differ by less than :data:`GROSS_CHANGE`
   (or by no more than their noise), and (c) the buffer's loss or gain over the window is less than
   :data:`STORE_TOLERANCE` of the batches taken in it.

The floor is the sweep's own warm-up, or one step; the cap leaves at least half of the steps and :data:`MIN_STEPS`.

Many runs are looked at together, one in each row of an array: numpy's calls cost more than a run's arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harness.analysis.arrays import Floats, t_quantile
from harness.analysis.windows import Places, Windows

MIN_STEPS = 5
CLIP = 10.0
#: A leading step that takes this many times the steady median belongs to the warm-up.
SLOW = 1.5
DRIFT_TOLERANCE = 0.05
#: On a logarithmic scale: a factor of 1.25.
GROSS_CHANGE = math.log(1.25)
STORE_TOLERANCE = 0.03


@dataclass(frozen=True)
class SteadyWindow:
    """Steps ``begin`` to the end are the steady window; ``warmup`` of the steps before it are warm-up.

    The steps between ``warmup`` and ``begin`` are the transient, such as a draining buffer. ``steady`` False: no such
    window was found, ``reason`` says why, and ``begin`` is the best guess.
    """

    warmup: int
    begin: int
    steady: bool
    reason: str = ""


def find_steady(
    durations_s: Floats, occupancy: Floats | None = None, floor: int = 1, taken_per_step: float = 1.0
) -> SteadyWindow:
    """The steady window of one run.

    Args:
        durations_s: time of each step from the first, shape (steps,).
        occupancy: batches ready in the buffer when each step asked, shape (steps,), NaN or None where unknown.
        floor: steps that are warm-up in any case.
        taken_per_step: batches taken from the buffer per step (below 1 where a batch is used for several steps).
    """
    levels = np.full(len(durations_s), math.nan) if occupancy is None else occupancy
    return find_all(Windows.whole(durations_s[None]), levels[None], [floor], [taken_per_step])[0]


def find_all(
    durations_s: Windows, occupancy: Floats, floor: Sequence[int], taken_per_step: Sequence[float]
) -> list[SteadyWindow]:
    """As :func:`find_steady` for many runs, whose steps end where their rows end, as :meth:`Windows.aligned` has them.

    Args:
        occupancy: shape (runs, places) as the durations' values; NaN only where a step's is not known.
    """
    counts = durations_s.counts
    floors = np.clip(np.array(floor, dtype=np.int64), 0, counts)
    found = [
        SteadyWindow(begin, begin, False, f"only {count - begin} steps after the warm-up")
        for begin, count in zip(floors.tolist(), counts.tolist(), strict=True)
    ]
    runs = np.flatnonzero(counts - floors >= MIN_STEPS)
    if len(runs):
        taken = np.array(taken_per_step, dtype=np.float64)[runs]
        windows = _windows(durations_s.of_rows(runs), occupancy[runs], floors[runs], taken)
        for run, window in zip(runs.tolist(), windows, strict=True):
            found[run] = window
    return found


def _windows(durations_s: Windows, occupancy: Floats, floor: Places, taken_per_step: Floats) -> Iterator[SteadyWindow]:
    first, end = durations_s.begin, durations_s.end
    floor = floor + first
    cap = np.maximum(floor, np.minimum(end - MIN_STEPS, floor + (end - floor) // 2))
    begin = _truncations(durations_s, floor, cap)
    known = np.flatnonzero(np.isfinite(occupancy).all(axis=1))
    if len(known):
        levels = durations_s.of(occupancy).of_rows(known)
        begin[known] = np.maximum(begin[known], _truncations(levels, floor[known], cap[known]))
    steady = durations_s.since(begin)
    warmup = _warmups(durations_s, steady, floor)
    reasons = _unsteadiness(steady, occupancy, taken_per_step)
    for slow, left_out, reason in zip((warmup - first).tolist(), (begin - first).tolist(), reasons, strict=True):
        yield SteadyWindow(slow, left_out, not reason, reason)


def _warmups(run: Windows, steady: Windows, floor: Places) -> Places:
    """Leading steps slower than the steady ones: warm-up; what follows up to the window is the transient."""
    slow = (steady.values > SLOW * steady.medians()[:, None]) | ~run.inside
    leading = np.argmin(slow & ~steady.inside, axis=1)
    warmup: Places = np.minimum(np.maximum(floor, leading), steady.begin)
    return warmup


def _truncations(series: Windows, floor: Places, cap: Places) -> Places:
    """Where the values that remain begin, between ``floor`` and ``cap``, by MSER."""
    clipped = series.of(_clip(series)).since(floor)
    left = np.arange(series.values.shape[1], 0, -1, dtype=np.float64)
    centred = clipped.values - clipped.medians()[:, None]
    # for every number left out at once: sum of squares about the mean of what remains, over its length squared
    sums = np.cumsum(centred[:, ::-1], axis=1)[:, ::-1]
    squares = np.cumsum(centred[:, ::-1] ** 2, axis=1)[:, ::-1]
    error = np.maximum(squares - sums**2 / left, 0.0) / left**2
    error = np.where(Windows(error, floor, cap + 1).inside, error, math.inf)
    # equal errors up to rounding (a constant series) must leave out nothing
    rounding = [1e-12 * largest**2 for largest in clipped.of(np.abs(clipped.values)).maxima().tolist()]
    least = np.min(error, axis=1) + np.array(rounding)
    first: Places = np.argmax(error <= least[:, None], axis=1)
    return first


def _clip(series: Windows) -> Floats:
    half = series.since(series.begin + series.counts // 2)
    middle = half.medians()
    scale = 1.4826 * half.of(np.abs(half.values - middle[:, None])).medians()
    reach = np.maximum(np.maximum(CLIP * scale, 0.5 * np.abs(middle)), 1e-12)
    clipped: Floats = np.minimum(np.maximum(series.values, (middle - reach)[:, None]), (middle + reach)[:, None])
    return clipped


def _unsteadiness(steady: Windows, occupancy: Floats, taken_per_step: Floats) -> list[str]:
    """For each run why its window is not steady, or an empty text. The module's docstring has the criteria."""
    clipped = steady.of(_clip(steady))
    lost = _losses(steady.of(occupancy), taken_per_step)
    told = zip(drifts(clipped), _changes_of_halves(clipped), lost, steady.counts.tolist(), strict=True)
    return [_trend(drift, count) or _change(*change) or loss for drift, change, loss, count in told]


def _trend(drift: Drift, count: int) -> str:
    nearest = max(abs(drift.change) - drift.half_width, 0.0)
    return f"step time still trends: by {drift.change:+.0%} over its {count} steps" if nearest > DRIFT_TOLERANCE else ""


def _change(change: float, error: float) -> str:
    gross = abs(change) > max(GROSS_CHANGE, 3 * error)
    times = math.exp(change)
    return f"step time still changes: its second half takes {times:.2f} times as long as its first" if gross else ""


def _losses(occupancy: Windows, taken_per_step: Floats) -> Iterator[str]:
    """What the buffers lose or gain between the windows' first and last quarters, where that is too much."""
    known = np.all(np.isfinite(occupancy.values) | ~occupancy.inside, axis=1, keepdims=True)
    levels = occupancy.of(np.where(known, occupancy.values, 0.0))
    edge = np.maximum(levels.counts // 4, 1)
    lost = levels.until(levels.begin + edge).means() - levels.since(levels.end - edge).means()
    share = np.abs(lost) / np.maximum((levels.counts - edge) * taken_per_step, 1e-12)
    told = zip(lost.tolist(), share.tolist(), levels.counts.tolist(), strict=True)
    for batches, part, count in told:
        gone = part > STORE_TOLERANCE and abs(batches) >= 1.0
        word = "drains" if batches > 0 else "fills"
        yield f"the buffer still {word}: {abs(batches):.1f} batches over {count} steps" if gone else ""


@dataclass(frozen=True)
class Drift:
    """Relative change over the whole series by a straight line, and the half-width of its 95 % interval."""

    change: float
    half_width: float


def drifts(series: Windows) -> list[Drift]:
    """Least-squares trend of each series (of at least 5 values), its error corrected for autocorrelated residuals.

    The residuals' lag-1 correlation phi, corrected for its bias -(2 + 4 phi) / n about a fitted line, widens the
    variance by (1 + phi) / (1 - phi).
    """
    counts, middle = series.counts.tolist(), series.means()
    place = np.arange(series.values.shape[1]) - series.begin[:, None]
    time = series.of(place - ((series.counts - 1) / 2)[:, None])
    times = [(float(t @ values), float(t @ t)) for t, values in zip(time.each(), series.each(), strict=True)]
    slope = [along / square for along, square in times]
    residuals = series.of(series.values - middle[:, None] - np.array(slope)[:, None] * time.values)
    squares = [(float(r @ r), float(r[1:] @ r[:-1])) for r in residuals.each()]
    told = zip(counts, middle.tolist(), slope, squares, times, strict=True)
    return [_drift(count, mean, rise, *square, spread) for count, mean, rise, square, (_, spread) in told]


def _drift(count: int, middle: float, slope: float, square: float, lag: float, time_square: float) -> Drift:
    """From the mean, the slope, the residuals' sums of squares and of products of neighbours."""
    if middle <= 0 or square <= 1e-24 * count * middle**2:
        return Drift(slope * count / middle if middle > 0 else 0.0, 0.0)
    lagged = lag / square
    phi = min(max(lagged + (2 + 4 * lagged) / count, 0.0), 0.95)
    inflation = (1 + phi) / (1 - phi)
    df = max(count / inflation - 2, 1.0)
    error = math.sqrt(square / (count - 2) * inflation / time_square)
    return Drift(slope * count / middle, t_quantile(0.975, df) * error * count / middle)


def _changes_of_halves(series: Windows) -> list[tuple[float, float]]:
    """Logarithm of the ratio of mean step times, second half to first, and its error were the steps independent."""
    middle = series.begin + series.counts // 2
    halves = series.until(middle), series.since(middle)
    sums = [(half.counts.tolist(), half.means().tolist(), half.variances().tolist()) for half in halves]
    return [
        _change_of_halves(first, second) for first, second in zip(*(zip(*s, strict=True) for s in sums), strict=True)
    ]


def _change_of_halves(*halves: tuple[int, float, float]) -> tuple[float, float]:
    """From number of values, mean and variance of each half."""
    if min(mean for _, mean, _ in halves) <= 0:
        return 0.0, 0.0
    errors = [variance / count / mean**2 for count, mean, variance in halves]
    return math.log(halves[1][1] / halves[0][1]), math.sqrt(sum(errors))
