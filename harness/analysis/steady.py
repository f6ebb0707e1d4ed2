"""Where a run's steady state begins. Pure functions of numpy arrays.

The steps of a run begin with a warm-up (compilation, autotuning), and while step 1 compiled, the input pipeline
filled its buffer; the steps that follow live on that store and are faster than the pipeline can sustain. A steady
window begins where neither the step time nor the buffer's occupancy trends any more:

1. *Warm-up and step time.* MSER (White 1997; MSER-5 of White, Cobb & Spratt 2000 from 100 steps on) finds the
   truncation that minimises the squared standard error of the mean of what remains. The series is clipped first at
   :data:`CLIP` robust standard deviations of its second half, so that one straggler late in the run does not decide.
2. *Buffer.* The same on the occupancy. Its noise is small against a drain, so the later of both truncations counts.
3. *Check.* What remains is steady where (a) neither half's mean step time differs from the other's by more than
   :data:`LEVEL_TOLERANCE` beyond its uncertainty, and (b) the buffer's loss or gain over the window is less than
   :data:`STORE_TOLERANCE` of the images consumed in it.

The floor is the sweep's own warm-up, or one step; the cap leaves at least half of the steps and :data:`MIN_STEPS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.analysis import stats

Floats = NDArray[np.float64]

MIN_STEPS = 5
CLIP = 10.0
LEVEL_TOLERANCE = 0.05
STORE_TOLERANCE = 0.03
_BATCHED_FROM = 100
_BATCH = 5


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
    warmup = begin
    if occupancy is not None and np.isfinite(occupancy).all():
        drained = truncation(occupancy, floor, cap)
        if drained > begin or _drains(occupancy, floor, begin):
            warmup = floor
        begin = max(begin, drained)
    reason = unsteadiness(durations_s[begin:], None if occupancy is None else occupancy[begin:], taken_per_step)
    return SteadyWindow(warmup, begin, not reason, reason)


def _drains(occupancy: Floats, first: int, begin: int) -> bool:
    """Whether the buffer really lost or gained a batch between ``first`` and ``begin``."""
    return begin > first and abs(float(np.mean(occupancy[begin:])) - float(occupancy[first])) >= 1.0


def truncation(values: Floats, floor: int, cap: int) -> int:
    """The number of leading values to leave out, between ``floor`` and ``cap``, by MSER (MSER-5 from 100 values)."""
    clipped = _clip(values)
    size = _BATCH if len(values) - floor >= _BATCHED_FROM else 1
    batches = (len(values) - floor) // size
    usable = clipped[len(values) - batches * size :]
    means = usable.reshape(batches, size).mean(axis=1)
    offset = len(values) - batches * size
    # mean squares of what remains after leaving out the first d batch means, for every d at once
    tail = np.arange(batches, 0, -1, dtype=np.float64)
    centred = means - np.median(means)
    sums, squares = np.cumsum(centred[::-1])[::-1], np.cumsum(centred[::-1] ** 2)[::-1]
    error = np.maximum(squares - sums**2 / tail, 0.0) / tail**2
    allowed = offset + size * np.arange(batches) <= cap
    # equal errors up to rounding (a constant series) must leave out nothing
    best = int(np.flatnonzero(allowed & (error <= np.min(error[allowed]) + 1e-12 * np.max(np.abs(values)) ** 2))[0])
    return min(max(offset + size * best if best else floor, floor), cap)


def _clip(values: Floats) -> Floats:
    half = values[len(values) // 2 :]
    middle = float(np.median(half))
    scale = 1.4826 * float(np.median(np.abs(half - middle)))
    reach = max(CLIP * scale, 0.5 * abs(middle), 1e-12)
    clipped: Floats = np.clip(values, middle - reach, middle + reach)
    return clipped


def unsteadiness(durations_s: Floats, occupancy: Floats | None, taken_per_step: float = 1.0) -> str:
    """Why these steps are not steady, or an empty text.

    Step times: the two halves' mean times are compared as rates; unsteady where they differ by more than
    :data:`LEVEL_TOLERANCE` even at the near end of the 95 % interval of their ratio. Occupancy: unsteady where the
    buffer's change accounts for more than :data:`STORE_TOLERANCE` of the batches taken.
    """
    count = len(durations_s)
    if count < MIN_STEPS:
        return f"only {count} steps in the window"
    half = count // 2
    ones = np.ones(count)
    first = stats.within_run(ones[:half], durations_s[:half])
    second = stats.within_run(ones[half:], durations_s[half:])
    change = stats.ratio(first, second)
    near = _nearest_to_one(change)
    if abs(math.log(near)) > math.log1p(LEVEL_TOLERANCE):
        return f"step time still changes: its second half takes {change.value:.2f} times as long as its first"
    if occupancy is not None and np.isfinite(occupancy).all():
        edge = max(count // 4, 1)
        lost = float(np.mean(occupancy[:edge]) - np.mean(occupancy[-edge:]))
        share = abs(lost) / max((count - edge) * taken_per_step, 1e-12)
        if share > STORE_TOLERANCE and abs(lost) >= 1.0:
            word = "drains" if lost > 0 else "fills"
            return f"the buffer still {word}: {abs(lost):.1f} batches over {count} steps"
    return ""


def _nearest_to_one(change: stats.Estimate) -> float:
    if not math.isfinite(change.value) or change.value <= 0:
        return 1.0
    if not change.known:
        # too few steps for an interval: only a gross change counts
        return change.value if abs(math.log(change.value)) > math.log(1.5) else 1.0
    if change.low <= 1.0 <= change.high:
        return 1.0
    return change.low if change.low > 1.0 else change.high
