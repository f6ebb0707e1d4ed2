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
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from harness.analysis.arrays import Floats, mean, median, t_quantile, variance

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
    count = len(durations_s)
    floor = min(max(floor, 0), count)
    if count - floor < MIN_STEPS:
        return SteadyWindow(floor, floor, False, f"only {max(count - floor, 0)} steps after the warm-up")
    cap = max(floor, min(count - MIN_STEPS, floor + (count - floor) // 2))
    begin = truncation(durations_s, floor, cap)
    if occupancy is not None and np.isfinite(occupancy).all():
        begin = max(begin, truncation(occupancy, floor, cap))
    reason = unsteadiness(durations_s[begin:], None if occupancy is None else occupancy[begin:], taken_per_step)
    return SteadyWindow(_warmup(durations_s, floor, begin), begin, not reason, reason)


def _warmup(durations_s: Floats, floor: int, begin: int) -> int:
    """Leading steps slower than the steady ones: warm-up; what follows up to ``begin`` is the transient."""
    slow = durations_s[:begin] > SLOW * median(durations_s[begin:])
    leading = int(np.argmin(slow)) if not slow.all() else begin
    return min(max(floor, leading), begin)


def truncation(values: Floats, floor: int, cap: int) -> int:
    """The number of leading values to leave out, between ``floor`` and ``cap``, by MSER."""
    clipped = _clip(values)[floor:]
    left = np.arange(len(clipped), 0, -1, dtype=np.float64)
    centred = clipped - median(clipped)
    # for every number left out at once: sum of squares about the mean of what remains, over its length squared
    sums, squares = np.cumsum(centred[::-1])[::-1], np.cumsum(centred[::-1] ** 2)[::-1]
    error = (np.maximum(squares - sums**2 / left, 0.0) / left**2)[: cap - floor + 1]
    # equal errors up to rounding (a constant series) must leave out nothing
    rounding = 1e-12 * float(np.max(np.abs(clipped))) ** 2
    return floor + int(np.flatnonzero(error <= np.min(error) + rounding)[0])


def _clip(values: Floats) -> Floats:
    half = values[len(values) // 2 :]
    middle = median(half)
    scale = 1.4826 * median(np.abs(half - middle))
    reach = max(CLIP * scale, 0.5 * abs(middle), 1e-12)
    clipped: Floats = np.minimum(np.maximum(values, middle - reach), middle + reach)
    return clipped


def unsteadiness(durations_s: Floats, occupancy: Floats | None, taken_per_step: float = 1.0) -> str:
    """Why these steps are not steady, or an empty text. The module's docstring has the criteria."""
    count = len(durations_s)
    if count < MIN_STEPS:
        return f"only {count} steps in the window"
    clipped = _clip(durations_s)
    trend = drift(clipped)
    nearest = max(abs(trend.change) - trend.half_width, 0.0)
    if nearest > DRIFT_TOLERANCE:
        return f"step time still trends: by {trend.change:+.0%} over its {count} steps"
    half = count // 2
    change, error = _change_of_halves(clipped[:half], clipped[half:])
    if abs(change) > max(GROSS_CHANGE, 3 * error):
        return f"step time still changes: its second half takes {math.exp(change):.2f} times as long as its first"
    if occupancy is not None and np.isfinite(occupancy).all():
        edge = max(count // 4, 1)
        lost = mean(occupancy[:edge]) - mean(occupancy[-edge:])
        share = abs(lost) / max((count - edge) * taken_per_step, 1e-12)
        if share > STORE_TOLERANCE and abs(lost) >= 1.0:
            word = "drains" if lost > 0 else "fills"
            return f"the buffer still {word}: {abs(lost):.1f} batches over {count} steps"
    return ""


@dataclass(frozen=True)
class Drift:
    """Relative change over the whole series by a straight line, and the half-width of its 95 % interval."""

    change: float
    half_width: float


def drift(values: Floats) -> Drift:
    """Least-squares trend of ``values`` (at least 5), its error corrected for autocorrelated residuals.

    The residuals' lag-1 correlation phi, corrected for its bias -(2 + 4 phi) / n about a fitted line, widens the
    variance by (1 + phi) / (1 - phi).
    """
    count, middle = len(values), mean(values)
    time = np.arange(count) - (count - 1) / 2
    slope = float(time @ values) / float(time @ time)
    residual = values - middle - slope * time
    square = float(residual @ residual)
    if middle <= 0 or square <= 1e-24 * count * middle**2:
        return Drift(slope * count / middle if middle > 0 else 0.0, 0.0)
    lagged = float(residual[1:] @ residual[:-1]) / square
    phi = min(max(lagged + (2 + 4 * lagged) / count, 0.0), 0.95)
    inflation = (1 + phi) / (1 - phi)
    df = max(count / inflation - 2, 1.0)
    error = math.sqrt(square / (count - 2) * inflation / float(time @ time))
    return Drift(slope * count / middle, t_quantile(0.975, df) * error * count / middle)


def _change_of_halves(first: Floats, second: Floats) -> tuple[float, float]:
    """Logarithm of the ratio of mean step times, second to first, and its error were the steps independent."""
    means = mean(first), mean(second)
    if min(means) <= 0:
        return 0.0, 0.0
    errors = [variance(part) / len(part) / middle**2 for part, middle in zip((first, second), means, strict=True)]
    return math.log(means[1] / means[0]), math.sqrt(sum(errors))
