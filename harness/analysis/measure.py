"""From the steps of all ranks to the numbers of a run. Pure; the definitions are in docs and measurement rules:

throughput is images / elapsed time over the steady window, on the slowest rank's clock; fresh and consumed images
are kept apart; the transient before the window is reported, never averaged in.

Runs are measured together, one in each row of an array.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import index
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.analysis import stats, steady
from harness.analysis.arrays import Floats, mean, sorted_quantile, total
from harness.analysis.stats import Estimate
from harness.analysis.step_columns import Steps
from harness.analysis.windows import Places, Windows, alike

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


class Wanted(NamedTuple):
    """A run to be measured.

    ``ranks``: the steps of *every* rank; a missing rank's share would be missing in the sum. ``warmup``: steps that are
    warm-up in any case, or None: the first step alone. ``timed``: steps whose elapsed time is the training time.
    """

    ranks: Sequence[Steps]
    warmup: int | None
    timed: int


def common_steps(ranks: Sequence[Steps]) -> list[Steps]:
    """Each rank's record of the steps that every rank finished."""
    first = ranks[0].step
    if all(np.array_equal(rank.step, first) for rank in ranks[1:]):
        return list(ranks)
    shared = reduce(np.intersect1d, [rank.step for rank in ranks])
    return [rank.only(shared) for rank in ranks]


def measure(ranks: Sequence[Steps], warmup: int | None, timed: int) -> Measurement | None:
    """As :func:`measure_all` for one run."""
    return measure_all([Wanted(ranks, warmup, timed)])[0]


def measure_all(runs: Sequence[Wanted]) -> list[Measurement | None]:
    """Numbers of runs from all their ranks' steps; None where no step is common to all."""
    found: list[Measurement | None] = [None] * len(runs)
    common = [run._replace(ranks=common_steps(run.ranks) if run.ranks else []) for run in runs]
    for numbers in alike(len(run.ranks[0]) if run.ranks else 0 for run in common):
        for number, measured in zip(numbers, _measure_alike([common[n] for n in numbers]), strict=True):
            found[number] = measured
    return found


class _Table:
    """Runs side by side: of each rank a row of durations, of each run a row of what its ranks did together.

    The rows end with the runs' last steps; ``first`` is where the runs begin.
    """

    def __init__(self, runs: Sequence[Wanted]):
        self.runs = runs
        self.ranks = [rank for run in runs for rank in run.ranks]
        self.sizes = [len(run.ranks) for run in runs]
        self.places = np.cumsum([0, *self.sizes[:-1]])
        self.durations = Windows.aligned([rank.durations_s for rank in self.ranks])
        self.fresh, self.consumed, occupancy = map(self._sums, ("fresh", "consumed", "occupancy"))
        self.occupancy = occupancy.of(occupancy.values / np.array(self.sizes)[:, None])
        self.first, self.end = self.fresh.begin, self.fresh.end
        self.steps = self.fresh.counts
        self.gaps = [run.ranks[0].gaps for run in runs]

    def _sums(self, column: str) -> Windows:
        """A column, summed over each run's ranks."""
        return Windows.aligned(
            [
                run.ranks[0][column] if len(run.ranks) == 1 else np.sum([rank[column] for rank in run.ranks], axis=0)
                for run in self.runs
            ]
        )

    def of_ranks(self, places: Places) -> Places:
        """Places of runs, for each of their ranks."""
        return np.repeat(places, self.sizes)

    def by_run(self, values: Floats) -> list[Floats]:
        """Values of ranks, run by run."""
        return [values[first : first + size] for first, size in zip(self.places.tolist(), self.sizes, strict=True)]

    def slowest(self, begin: Places) -> Floats:
        """Of each run the rank whose steps from ``begin`` on took longest."""
        if len(self.ranks) == len(self.runs):
            return self.durations.values
        times = self.by_run(self.durations.since(self.of_ranks(begin)).totals())
        slowest: Floats = self.durations.values[self.places + [int(np.argmax(of_ranks)) for of_ranks in times]]
        return slowest


def _measure_alike(runs: Sequence[Wanted]) -> list[Measurement]:
    table = _Table(runs)
    floor = [1 if run.warmup is None else index(run.warmup) for run in runs]
    taken = np.count_nonzero(table.fresh.values > 0, axis=1) / table.steps
    before = table.slowest(table.first + np.clip(floor, 0, table.steps))
    windows = steady.find_all(table.fresh.of(before), table.occupancy.values, floor, taken.tolist())
    warmup, begin = (table.first + [getattr(window, name) for window in windows] for name in ("warmup", "begin"))
    slow, whole = table.slowest(begin), _whole_batches(table.fresh.since(begin))
    rates = stats.within_runs(whole, whole.of(slow))
    columns = _rates(table, slow, whole, Windows(table.fresh.values, warmup, begin)) | {
        "time_s": _training_times_s(table),
        "first_step_s": before[np.arange(len(runs)), table.first].tolist(),
    }
    values = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    parts = values, _step_times(table.fresh.of(slow).since(begin)), _shares(table, whole), _buffers(table, begin)
    measured = []
    for number, further in enumerate(zip(*parts, strict=True)):
        window, rate, steps = windows[number], rates[number], runs[number].ranks[0].step
        numbers = _counts(rate, len(steps), window.begin)
        for more in further:
            numbers |= more
        first = _number(steps, window.warmup), _number(steps, window.begin)
        measured.append(Measurement(numbers, window, rate, *first, table.gaps[number]))
    return measured


def _counts(rate: Estimate, steps: int, begin: int) -> dict[str, float]:
    return {
        "images_per_s": rate.value,
        "images_per_s_low": rate.low if rate.known else _NAN,
        "images_per_s_high": rate.high if rate.known else _NAN,
        "steps_done": float(steps),
        "steps_left_out": float(begin),
        "steps_steady": float(steps - begin),
    }


def _rates(table: _Table, slow: Floats, whole: Windows, transient: Windows) -> dict[str, list[float]]:
    """Images a second by other definitions than that of the run's rate, each for all runs."""
    after = table.fresh.since(table.first + 1)
    return {
        "consumed_per_s": stats.rates(whole.of(table.consumed.values), whole.of(slow)).tolist(),
        "transient_images_per_s": stats.rates(transient, transient.of(slow)).tolist(),
        "all_images_per_s": stats.rates(after, after.of(slow)).tolist(),
        "mean_of_step_rates": _means_of_rates(after, after.of(slow)).tolist(),
    }


def _number(steps: NDArray[np.int64], place: int) -> int:
    """The number of the step at a place; of the one after the last, where the window is empty."""
    return int(steps[place]) if place < len(steps) else int(steps[-1]) + 1


def _whole_batches(fresh: Windows) -> Windows:
    """The windows' steps from the first that takes a batch to the last before one: no batch counts in part.

    Where a batch serves several steps (``batch_interval``), a window that cuts one would be off by up to a batch.
    """
    begin, end = fresh.begin.copy(), fresh.end.copy()
    taking = fresh.inside & (fresh.values > 0)
    taken = np.count_nonzero(taking, axis=1)
    for run in np.flatnonzero((taken >= 2) & (taken != fresh.counts)).tolist():
        places = np.flatnonzero(taking[run])
        begin[run], end[run] = places[0], places[-1]
    return Windows(fresh.values, begin, end)


def _means_of_rates(images: Windows, durations_s: Windows) -> Floats:
    """Means over the steps that took any time."""
    positive = durations_s.values > 0
    rates = np.divide(images.values, durations_s.values, out=np.zeros_like(images.values), where=positive)
    means = images.of(rates).means()
    for run in np.flatnonzero((images.inside & ~positive).any(axis=1)).tolist():
        begin, end = images.begin[run], images.end[run]
        means[run] = mean(rates[run, begin:end][positive[run, begin:end]])
    return means


def _training_times_s(table: _Table) -> list[float]:
    """Elapsed time of the last ``timed`` steps on the slowest rank; NaN for a run that has not done them all."""
    begin = np.maximum(table.end - [run.timed for run in table.runs], table.first)
    times = table.by_run(table.durations.since(table.of_ranks(begin)).totals())
    return [
        _NAN if gaps or steps < (run.warmup or 0) + run.timed else float(np.max(of_ranks))
        for run, steps, gaps, of_ranks in zip(table.runs, table.steps.tolist(), table.gaps, times, strict=True)
    ]


def _step_times(durations_s: Windows) -> Iterator[dict[str, float]]:
    means = durations_s.means().tolist()
    for mean_s, rising in zip(means, durations_s.of(durations_s.rising()).each(), strict=True):
        yield (
            {
                "step_mean_s": mean_s,
                "step_p50_s": sorted_quantile(rising, 0.5),
                "step_p95_s": sorted_quantile(rising, 0.95),
                "step_max_s": float(rising[-1]),
            }
            if len(rising)
            else {}
        )


def _shares(table: _Table, window: Windows) -> Iterator[dict[str, float]]:
    spans = Windows(table.durations.values, table.of_ranks(window.begin), table.of_ranks(window.end))
    parts = [Windows.aligned([rank[f"{part}_s"] for rank in table.ranks]).values for part in _PARTS]
    sums = [table.by_run(spans.of(values).totals()) for values in parts]
    for elapsed_s, *of_parts in zip(_elapsed_s(table, window, spans), *sums, strict=True):
        if elapsed_s <= 0:
            yield {}
            continue
        shares = {name: total(part) / elapsed_s for name, part in zip(_SHARES, of_parts, strict=True)}
        shares["au_percent"] = 100 * (shares["compute_share"] + shares["exchange_share"])
        own = of_parts[_PARTS.index("copy")] + of_parts[_PARTS.index("compute")]
        if len(own) > 1 and own.mean() > 0:
            shares["rank_imbalance"] = float(own.max() / own.mean() - 1)
        yield shares


_PARTS = ("wait", "copy", "compute", "exchange")
_SHARES = [f"{part}_share" for part in _PARTS]


def _elapsed_s(table: _Table, window: Windows, spans: Windows) -> list[float]:
    """Time of each run's ranks together in its window."""
    if len(table.ranks) == len(table.runs):
        return list(map(float, spans.totals()))
    rows = table.by_run(table.durations.values)
    bounds = zip(table.first.tolist(), window.begin.tolist(), window.end.tolist(), strict=True)
    elapsed_s = []
    for durations_s, (first, begin, end) in zip(rows, bounds, strict=True):
        durations_s = durations_s[:, begin:end]
        # added up in the order in which the ranks' times stand in memory
        elapsed_s.append(float((durations_s if begin > first else np.ascontiguousarray(durations_s)).sum()))
    return elapsed_s


def _buffers(table: _Table, begin: Places) -> Iterator[dict[str, float]]:
    """What the buffers held, in the runs that tell it of every step."""
    known = np.isfinite(table.occupancy.values).all(axis=1) & (begin < table.end)
    levels = table.occupancy.of(np.where(known[:, None], table.occupancy.values, 0.0))
    means = levels.since(begin).means().tolist()
    peaks = levels.until(np.minimum(begin + 1, table.end)).maxima().tolist()
    for told, level, peak, fresh in zip(known.tolist(), means, peaks, table.fresh.each(), strict=True):
        taken = fresh[fresh > 0]
        drained = max(peak - level, 0.0) * (mean(taken) if len(taken) else 0.0)
        yield {"occupancy_peak": peak, "occupancy_steady": level, "drained_images": drained} if told else {}
