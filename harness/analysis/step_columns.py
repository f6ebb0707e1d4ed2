"""The steps of one rank: gathered from ``steps`` events line by line into packed columns, then held as arrays."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.analysis.arrays import Floats
from harness.model.event import STEP_COLUMNS

#: The one column that may hold null, or be missing.
NULLABLE = "occupancy"
_COLUMNS = ("step", *(name for name in STEP_COLUMNS if name != NULLABLE), NULLABLE)
_FLOATS = _COLUMNS[1:]
_values_of = itemgetter(*_COLUMNS)
_PACK_AT = 64
_LARGEST = 2**63
_SEALED = b',"crc":"'


@dataclass(frozen=True)
class Steps:
    """The steps of one rank, by column: ``step`` (steps,) int, and the columns of STEP_COLUMNS as floats."""

    step: NDArray[np.int64]
    columns: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.step)

    def __getitem__(self, column: str) -> Floats:
        return self.columns[column]

    def only(self, steps: NDArray[np.int64]) -> Steps:
        """The given step numbers alone."""
        keep = np.isin(self.step, steps)
        return Steps(self.step[keep], {name: values[keep] for name, values in self.columns.items()})

    @cached_property
    def durations_s(self) -> Floats:
        """Time of each step, from the end of the step before: gaps between steps belong to the later one.

        The first step, and one whose predecessor is not on record, counts from its own begin.
        """
        begin, end = self["begin_s"], self["end_s"]
        since = begin.copy()
        np.copyto(since[1:], end[:-1], where=self.step[1:] - self.step[:-1] == 1 if self.gaps else True)
        durations: Floats = end - since
        return durations

    @cached_property
    def gaps(self) -> int:
        """How many of the steps on record do not follow the one before."""
        count = len(self)
        # the numbers rise
        if not count or int(self.step[-1]) - int(self.step[0]) == count - 1:
            return 0
        return int(np.count_nonzero(self.step[1:] - self.step[:-1] != 1))


class StepColumns:
    """Gathers ``steps`` events; every some of them are packed into eight bytes a number, so memory stays small."""

    def __init__(self) -> None:
        self._waiting: list[dict[str, Any]] = []
        self._doubtful = False
        self._packed: list[tuple[NDArray[np.int64], Floats]] = []
        #: Records left out so far because their columns are of unequal length or wrong type.
        self.ill_formed = 0

    def add(self, record: dict[str, Any], line: bytes) -> None:
        """Take one record, parsed from ``line``."""
        self._waiting.append(record)
        if line[-len(_SEALED) - 10 : -10] != _SEALED and (b"true" in line or b"false" in line):
            # packing would take a truth value for a number; the program itself, whose lines are sealed, writes none
            self._doubtful = True
        if len(self._waiting) == _PACK_AT:
            self._pack()

    def _pack(self) -> None:
        records = self._waiting
        try:
            if self._doubtful:
                raise ValueError("truth values")
            packed = _pack(records)
        except (KeyError, TypeError, ValueError, OverflowError, struct.error):
            good = [whole for record in records if (whole := _well_formed(record)) is not None]
            self.ill_formed += len(records) - len(good)
            packed = _pack(good)
        self._packed.append(packed)
        self._waiting, self._doubtful = [], False

    def steps(self) -> Steps:
        """What was gathered, in order of the steps' numbers; a step on record twice counts once, as it came first."""
        if self._waiting:
            self._pack()
        if len(self._packed) == 1:
            step, floats = self._packed[0]
        else:
            parts = self._packed or [_pack([])]
            step = np.concatenate([steps for steps, _ in parts])
            floats = np.concatenate([columns for _, columns in parts], axis=1)
        if not (step[1:] > step[:-1]).all():
            step, first = np.unique(step, return_index=True)
            floats = floats[:, first]
        return Steps(step, dict(zip(_FLOATS, floats, strict=True)))


def _pack(records: Sequence[Mapping[str, Any]]) -> tuple[NDArray[np.int64], Floats]:
    """The steps' numbers, shape (steps,), and their other columns, shape (columns, steps), of well-formed records.

    Raises:
        KeyError, TypeError, ValueError, OverflowError, struct.error: where a record is ill-formed.
    """
    columns = list(zip(*map(_values_of, records), strict=True)) or [()] * len(_COLUMNS)
    lengths = list(map(len, columns[0]))
    if any(list(map(len, column)) != lengths for column in columns):
        raise ValueError("columns of unequal length")
    values: list[Any] = []
    for part in chain.from_iterable(columns):
        values += part
    steps, floats = sum(lengths), len(_COLUMNS) - 1
    layout = f"{steps}q{steps * floats}d"
    try:
        packed = struct.pack(layout, *values)
    except struct.error:
        # looking for null beforehand would take as long as packing
        values[-steps:] = [math.nan if value is None else value for value in values[-steps:]]
        packed = struct.pack(layout, *values)
    return np.frombuffer(packed, np.int64, steps), np.frombuffer(packed, offset=8 * steps).reshape(floats, steps)


def _well_formed(record: dict[str, Any]) -> dict[str, Any] | None:
    """The record, complete; None where its columns are of unequal length or wrong type."""
    steps = record.get("step")
    if not isinstance(steps, list) or not all(type(step) is int and _is_number(step) for step in steps):
        return None
    whole = {NULLABLE: [None] * len(steps)} | record
    for name in STEP_COLUMNS:
        values = whole.get(name)
        if not isinstance(values, list) or len(values) != len(steps):
            return None
        if not all(_is_number(value) or (value is None and name == NULLABLE) for value in values):
            return None
    return whole


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < _LARGEST)
