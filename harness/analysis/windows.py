"""Sums, means and medians of many series at once: windows of the rows of one table.

A campaign has ten thousand short series, and each call of numpy costs more than it computes for one of them. Every
result is what ``arrays.py`` gives for the window alone, to the last bit (``tests/unit/analysis/test_windows.py``): sums
are taken pairwise within the row from the window's begin on, as numpy's own are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.analysis.arrays import Floats

Places = NDArray[np.int64]


def alike(counts: Iterable[int]) -> list[list[int]]:
    """Places of series of so many values, by length: the longest of a group has less than twice the shortest's.

    So at most half of a table of one group is empty. Series without a value are in no group.
    """
    groups: dict[int, list[int]] = {}
    for place, count in enumerate(counts):
        if count:
            groups.setdefault(count.bit_length(), []).append(place)
    return list(groups.values())


@dataclass(frozen=True)
class Windows:
    """Of each row of ``values``, shape (rows, length), what lies from ``begin`` to before ``end``, shape (rows,)."""

    values: Floats
    begin: Places
    end: Places

    @classmethod
    def whole(cls, values: Floats) -> Windows:
        """Whole rows."""
        rows, length = values.shape
        return cls(values, np.zeros(rows, dtype=np.int64), np.full(rows, length))

    @classmethod
    def aligned(cls, series: Sequence[Floats]) -> Windows:
        """Series of any length, a row for each, all of which end at the rows' end; zeros stand before them."""
        counts = np.array([len(one) for one in series])
        length = int(counts.max())
        if (counts == length).all():
            return cls.whole(np.stack(series))
        values = np.zeros((len(series), length))
        for row, one in zip(values, series, strict=True):
            row[length - len(one) :] = one
        return cls(values, length - counts, np.full(len(series), length))

    def of(self, values: Floats) -> Windows:
        """The same windows of other values."""
        return Windows(values, self.begin, self.end)

    def since(self, begin: Places) -> Windows:
        return Windows(self.values, begin, self.end)

    def until(self, end: Places) -> Windows:
        return Windows(self.values, self.begin, end)

    def of_rows(self, rows: Places) -> Windows:
        """These rows alone."""
        return Windows(self.values[rows], self.begin[rows], self.end[rows])

    @property
    def counts(self) -> Places:
        return self.end - self.begin

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Shape (rows, length): whether a value stands in its row's window."""
        place = np.arange(self.values.shape[1])
        return (place >= self.begin[:, None]) & (place < self.end[:, None])

    def each(self) -> list[Floats]:
        """The windows, one by one."""
        bounds = zip(self.values, self.begin.tolist(), self.end.tolist(), strict=True)
        return [row[begin:end] for row, begin, end in bounds]

    def totals(self) -> Floats:
        """Zero for an empty window."""
        rows, length = self.values.shape
        # one place before each row holds what its sum starts with; one more at the end, where the last one stops
        spaced = np.empty(rows * (length + 1) + 1)
        spaced[:-1].reshape(rows, length + 1)[:, 1:] = self.values
        bounds = np.stack([self.begin, self.end + 1], axis=1) + (length + 1) * np.arange(rows)[:, None]
        spaced[bounds[:, 0]] = spaced[-1] = 0.0
        sums: Floats = np.add.reduceat(spaced, bounds.ravel())[::2]
        return sums

    def means(self) -> Floats:
        """NaN for an empty window."""
        counts = self.counts
        means: Floats = np.where(counts > 0, self.totals() / np.maximum(counts, 1), math.nan)
        return means

    def variances(self) -> Floats:
        """Mean square distance from the mean."""
        distance = self.values - self.means()[:, None]
        return self.of(distance * distance).means()

    def rising(self) -> Floats:
        """The windows' values in order, each window in its place; what stands around them is infinite."""
        place = np.arange(self.values.shape[1])
        values = np.where(place < self.begin[:, None], -math.inf, self.values)
        values[place >= self.end[:, None]] = math.inf
        values.sort(axis=1)
        return values

    def medians(self) -> Floats:
        """Of windows that hold a value; NaN where one of them is NaN."""
        rising, rows, middle = self.rising(), np.arange(len(self.values)), self.begin + self.counts // 2
        high = rising[rows, middle]
        low = rising[rows, middle - 1 + self.counts % 2]
        medians: Floats = np.where(np.isnan(rising[:, -1]), math.nan, np.where(self.counts % 2, high, (low + high) / 2))
        return medians

    def maxima(self) -> Floats:
        """Of windows that hold a value."""
        maxima: Floats = np.where(self.inside, self.values, -math.inf).max(axis=1)
        return maxima
