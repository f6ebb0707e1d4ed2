"""What the step lines of a log say, in columns: a log has hundreds of such lines, and rates are computed from all."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from harness.analysis.arrays import Floats

#: The numbers of a step line that make it one: without any it was cut off, or written over by another rank.
TIMED = ("images_per_s", "step_s", "epoch_s")
#: The numbers of a step line that are used.
USED = frozenset({*TIMED, "steps", "step", "images", "val_loss"})
Column = list[float | None]


class Steps:
    """Step lines in order. ``columns`` has for each name a list with a number, or None, for each line."""

    def __init__(self) -> None:
        self.columns: dict[str, Column] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, columns: Mapping[str, Column]) -> None:
        """Lines more; all columns given have the same length, and those not given say nothing."""
        count = len(next(iter(columns.values())))
        for name in {**self.columns, **columns}:
            self.columns.setdefault(name, [None] * self._count).extend(columns.get(name) or [None] * count)
        self._count += count

    def row(self, place: int) -> dict[str, float]:
        """What one line says."""
        return {name: value for name, column in self.columns.items() if (value := column[place]) is not None}

    def floats(self, name: str) -> Floats:
        """Shape (steps,), NaN where a line does not say."""
        column = self.columns.get(name)
        return np.full(self._count, math.nan) if column is None else np.array(column, dtype=np.float64)

    def says(self, name: str) -> bool:
        """Whether any line has this number."""
        return any(value is not None for value in self.columns.get(name, ()))


def timed(columns: Mapping[str, Column]) -> Mapping[str, Column]:
    """Of lines, those that have a time or a rate."""
    times = [columns[name] for name in TIMED if name in columns]
    if any(None not in column for column in times):
        return columns
    kept = [place for place, values in enumerate(zip(*times, strict=True)) if any(v is not None for v in values)]
    return {name: [column[place] for place in kept] for name, column in columns.items()}
