"""Reads one attempt's directory into memory: what each rank recorded, tolerant of everything a crash leaves."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from harness.analysis.stats import Floats, as_floats
from harness.files import read_json_lines
from harness.layout import AttemptLayout
from harness.model.event import STEP_COLUMNS
from harness.model.job import ExitRecord, RunSpec

_EVENTS_NAME = re.compile(r"events\.r(\d+)\.jsonl")
_SAMPLES_NAME = re.compile(r"samples\.(.+)\.jsonl")
_NULLABLE = {"occupancy"}


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

    @property
    def durations_s(self) -> Floats:
        """Time of each step, from the end of the step before: gaps between steps belong to the later one.

        The first step, and one whose predecessor is not on record, counts from its own begin.
        """
        begin, end = self["begin_s"], self["end_s"]
        previous = np.concatenate([begin[:1], end[:-1]])
        follows = np.concatenate([[False], np.diff(self.step) == 1]) if len(self) else np.zeros(0, dtype=bool)
        durations: Floats = end - np.where(follows, previous, begin)
        return durations


@dataclass(frozen=True)
class RankEvidence:
    """One rank's event file: events by kind (without ``steps``), its steps, and the lines that were damaged."""

    rank: int
    events: Mapping[str, list[dict[str, Any]]]
    steps: Steps
    torn_lines: tuple[int, ...] = ()

    def first(self, kind: str) -> dict[str, Any]:
        """The first event of a kind, or an empty one."""
        found = self.events.get(kind)
        return found[0] if found else {}

    def last(self, kind: str) -> dict[str, Any]:
        found = self.events.get(kind)
        return found[-1] if found else {}

    @property
    def clock_runs_back(self) -> bool:
        """Whether a step ended before it began, or began before the one before it ended: such a clock tells nothing."""
        begin, end = self.steps["begin_s"], self.steps["end_s"]
        return bool(np.any(end < begin) or np.any(begin[1:] < end[:-1] - 1e-6))


@dataclass(frozen=True)
class RunEvidence:
    """All that an attempt left."""

    spec: RunSpec | None
    ranks: tuple[RankEvidence, ...]
    exit: ExitRecord | None
    samples: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def missing_ranks(self) -> tuple[int, ...]:
        """Ranks that should have left events and have not."""
        if self.spec is None:
            return ()
        present = {rank.rank for rank in self.ranks if rank.events or len(rank.steps)}
        return tuple(rank for rank in range(self.spec.placement.ranks) if rank not in present)


def read_run(layout: AttemptLayout) -> RunEvidence:
    """Everything in the attempt's directory; what cannot be read is named in ``problems``, never raised."""
    problems: list[str] = []
    ranks, samples = [], {}
    names = sorted(p.name for p in layout.root.iterdir()) if layout.root.is_dir() else []
    for name in names:
        if match := _EVENTS_NAME.fullmatch(name):
            ranks.append(read_rank(layout.root / name, int(match[1]), problems))
        elif match := _SAMPLES_NAME.fullmatch(name):
            samples[match[1]] = list(read_json_lines(layout.root / name))
    return RunEvidence(
        spec=_read_model(RunSpec, layout.point, problems),
        ranks=tuple(sorted(ranks, key=lambda rank: rank.rank)),
        exit=_read_model(ExitRecord, layout.exit, problems),
        samples=samples,
        problems=tuple(problems),
    )


Model = TypeVar("Model", RunSpec, ExitRecord)


def _read_model(model: type[Model], path: Path, problems: list[str]) -> Model | None:
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        problems.append(f"{path.name}: {str(error).splitlines()[0]}")
        return None


def read_rank(path: Path, rank: int, problems: list[str]) -> RankEvidence:
    """One rank's events; damaged lines and ill-formed steps are left out and counted."""
    torn: list[int] = []
    events: dict[str, list[dict[str, Any]]] = {}
    parts: list[dict[str, Any]] = []
    try:
        for record in read_json_lines(path, torn):
            kind = record.get("event")
            if kind == "steps" and _well_formed(record):
                parts.append(record)
            elif kind == "steps":
                problems.append(f"{path.name}: a steps record has columns of unequal length or wrong type")
            elif isinstance(kind, str):
                events.setdefault(kind, []).append(record)
    except OSError as error:
        problems.append(f"{path.name}: {error.strerror}")
    return RankEvidence(rank, events, _join(parts), tuple(torn))


def _well_formed(record: Mapping[str, Any]) -> bool:
    steps = record.get("step")
    if not isinstance(steps, list) or not all(type(step) is int for step in steps):
        return False
    for name in STEP_COLUMNS:
        values = record.get(name, [None] * len(steps) if name in _NULLABLE else None)
        if not isinstance(values, list) or len(values) != len(steps):
            return False
        if not all(type(v) in (int, float) or (v is None and name in _NULLABLE) for v in values):
            return False
    return True


def _join(parts: list[dict[str, Any]]) -> Steps:
    numbers: list[int] = [step for part in parts for step in part["step"]]
    step = np.asarray(numbers, dtype=np.int64)
    # a step on record twice counts once, in order of its number
    _, first = np.unique(step, return_index=True)
    columns = {}
    for name in STEP_COLUMNS:
        values: list[Any] = []
        for part in parts:
            values += part.get(name) or [None] * len(part["step"])
        columns[name] = as_floats(values)[first]
    return Steps(step[first], columns)


def span_of(rank: RankEvidence, counter: str) -> float | None:
    """What a counter of the ``io`` events grew by between begin and end; None where either is not on record."""
    at = {event.get("at"): event.get(counter) for event in rank.events.get("io", [])}
    begin, end = at.get("begin"), at.get("end")
    if isinstance(begin, int | float) and isinstance(end, int | float) and end >= begin:
        return float(end - begin)
    return None


def compact_json(value: Any) -> str:
    """``value`` as one line of JSON with sorted keys, for a table's cell."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
