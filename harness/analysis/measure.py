"""From the steps of all ranks to the numbers of a run. Pure; the definitions are in docs and measurement rules:

throughput is images / elapsed time over the steady window, on the slowest rank's clock; fresh and consumed images
are kept apart; the transient before the window is reported, never averaged in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from harness.analysis import stats, steady
from harness.analysis.arrays import Floats, mean, sorted_quantile
from harness.analysis.stats import Estimate
from harness.analysis.step_columns import Steps

_NAN = math.nan


@dataclass(frozen=True)
class Measurement:
    """What the steps say. ``numbers`` holds values by column name; ``window`` counts from the first common step.

    ``timed_step`` and ``steady_step`` are the numbers of the first step after the warm-up and of the steady window.
    """

    numbers: dict[str, float]
    window: steady.SteadyWindow
    rate: Estimate
    timed_step: int
    steady_step: int
    gaps: int


def common_steps(ranks: Sequence[Steps]) -> list[Steps]:
    """Each rank's record of the steps that every rank finished."""
    first = ranks[0].step
    if all(np.array_equal(rank.step, first) for rank in ranks[1:]):
        return list(ranks)
    shared = reduce(np.intersect1d, [rank.step for rank in ranks])
    return [rank.only(shared) for rank in ranks]


def measure(ranks: Sequence[Steps], warmup: int | None, timed: int) -> Measurement | None:
    """Numbers of a run from all its ranks' steps; None where no step is common to all.

    Args:
        ranks: the steps of *every* rank; a missing rank's share would be missing in the sum.
        warmup: steps that are warm-up in any case, or None: the first step alone.
        timed: steps whose elapsed time is the training time.
    """
    ranks = common_steps(ranks) if ranks else []
    if not ranks or not len(ranks[0]):
        return None
    durations = np.stack([rank.durations_s for rank in ranks])
    fresh, consumed, occupancy = (_sum(ranks, name) for name in ("fresh", "consumed", "occupancy"))
    occupancy = occupancy / len(ranks)
    floor = 1 if warmup is None else warmup
    taken = int(np.count_nonzero(fresh > 0)) / len(fresh)
    slow_all = _slowest(durations, floor)
    window = steady.find_steady(slow_all, occupancy, floor, taken)
    begin = window.begin
    slow = _slowest(durations, begin)
    whole = slice(*_whole_batches(fresh, begin))
    estimate = stats.within_run(fresh[whole], slow[whole])
    gaps = int(np.count_nonzero(ranks[0].step[1:] - ranks[0].step[:-1] != 1))
    numbers = {
        "images_per_s": estimate.value,
        "images_per_s_low": estimate.low if estimate.known else _NAN,
        "images_per_s_high": estimate.high if estimate.known else _NAN,
        "consumed_per_s": stats.rate(consumed[whole], slow[whole]),
        "transient_images_per_s": stats.rate(fresh[window.warmup : begin], slow[window.warmup : begin]),
        "all_images_per_s": stats.rate(fresh[1:], slow[1:]),
        "mean_of_step_rates": _mean_of_rates(fresh[1:], slow[1:]),
        "time_s": _training_time_s(durations, warmup or 0, timed, gaps),
        "steps_done": float(len(fresh)),
        "steps_left_out": float(begin),
        "steps_steady": float(len(fresh) - begin),
        "first_step_s": float(slow_all[0]),
    }
    numbers |= _step_times(slow[begin:]) | _shares(ranks, durations, whole) | _buffer(occupancy, fresh, begin)
    timed, steady_step = (_number(ranks[0], place) for place in (window.warmup, begin))
    return Measurement(numbers, window, estimate, timed, steady_step, gaps)


def _sum(ranks: Sequence[Steps], column: str) -> Floats:
    """A column, summed over the ranks."""
    return ranks[0][column] if len(ranks) == 1 else np.sum([rank[column] for rank in ranks], axis=0)


def _slowest(durations: Floats, begin: int) -> Floats:
    """The rank, among shape (ranks, steps), whose steps from ``begin`` on took longest."""
    slowest: Floats = durations[int(np.argmax(durations[:, begin:].sum(axis=1))) if len(durations) > 1 else 0]
    return slowest


def _number(rank: Steps, place: int) -> int:
    """The number of the step at a place; of the one after the last, where the window is empty."""
    return int(rank.step[place]) if place < len(rank) else int(rank.step[-1]) + 1


def _whole_batches(fresh: Floats, begin: int) -> tuple[int, int]:
    """The window's steps from the first that takes a batch to the last before one: no batch counts in part.

    Where a batch serves several steps (``batch_interval``), a window that cuts one would be off by up to a batch.
    """
    taking = begin + np.flatnonzero(fresh[begin:] > 0)
    every = len(taking) < 2 or len(taking) == len(fresh) - begin
    return (begin, len(fresh)) if every else (int(taking[0]), int(taking[-1]))


def _mean_of_rates(images: Floats, durations_s: Floats) -> float:
    positive = durations_s > 0
    return mean(images[positive] / durations_s[positive])


def _training_time_s(durations: Floats, warmup: int, timed: int, gaps: int) -> float:
    """Elapsed time of the last ``timed`` steps on the slowest rank; NaN for a run that has not done them all."""
    if gaps or durations.shape[1] < warmup + timed:
        return _NAN
    return float(np.max(durations[:, durations.shape[1] - timed :].sum(axis=1)))


def _step_times(durations_s: Floats) -> dict[str, float]:
    if not len(durations_s):
        return {}
    rising = np.sort(durations_s)
    return {
        "step_mean_s": mean(durations_s),
        "step_p50_s": sorted_quantile(rising, 0.5),
        "step_p95_s": sorted_quantile(rising, 0.95),
        "step_max_s": float(rising[-1]),
    }


def _shares(ranks: Sequence[Steps], durations: Floats, window: slice) -> dict[str, float]:
    elapsed_s = float(durations[:, window].sum())
    if elapsed_s <= 0:
        return {}
    sums = {part: np.array([rank[f"{part}_s"][window].sum() for rank in ranks]) for part in _PARTS}
    shares = {f"{part}_share": float(values.sum()) / elapsed_s for part, values in sums.items()}
    shares["au_percent"] = 100 * (shares["compute_share"] + shares["exchange_share"])
    own = sums["copy"] + sums["compute"]
    if len(ranks) > 1 and own.mean() > 0:
        shares["rank_imbalance"] = float(own.max() / own.mean() - 1)
    return shares


_PARTS = ("wait", "copy", "compute", "exchange")


def _buffer(occupancy: Floats, fresh: Floats, begin: int) -> dict[str, float]:
    if not np.isfinite(occupancy).all() or begin >= len(occupancy):
        return {}
    level = mean(occupancy[begin:])
    taken = fresh[fresh > 0]
    per_batch = mean(taken) if len(taken) else 0.0
    peak = float(np.max(occupancy[: begin + 1]))
    return {
        "occupancy_peak": peak,
        "occupancy_steady": level,
        "drained_images": max(peak - level, 0.0) * per_batch,
    }
