"""Reads one attempt's directory into memory: what each rank recorded, tolerant of everything a crash leaves."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from pydantic import ValidationError

from harness.analysis.lines import PathText, line_blocks, records, records_of, whole_file
from harness.analysis.step_columns import StepColumns, Steps
from harness.files import as_text, is_text
from harness.layout import AttemptLayout
from harness.model.evidence import Evidence
from harness.model.job import ExitRecord, RunSpec
from harness.model.names import NUMBER_DIGITS

_EVENTS_NAME = re.compile(rf"events\.r([0-9]{{1,{NUMBER_DIGITS}}})\.jsonl")
#: More than any machine runs: each rank that is missing is named, and those of a damaged number have no end.
_MOST_RANKS = 1_000_000
_SAMPLES_NAME = re.compile(r"samples\.(.+)\.jsonl")


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

    @cached_property
    def io(self) -> Mapping[Any, Mapping[str, Any]]:
        """The last ``io`` event for each ``at``."""
        return {event.get("at"): event for event in self.events.get("io", [])}

    @cached_property
    def clock_runs_back(self) -> bool:
        """Whether a step ended before it began, or began before the one before it ended: such a clock tells nothing."""
        begin, end = self.steps["begin_s"], self.steps["end_s"]
        return bool((end < begin).any() or (begin[1:] < end[:-1] - 1e-6).any())


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

    @property
    def gathered(self) -> Evidence | None:
        """What a verdict rests on; None where there is no usable exit record or point.json."""
        if self.exit is None or self.spec is None:
            return None
        said = {rank.rank: end.get("ok") is True for rank in self.ranks if (end := rank.last("run_end"))}
        return Evidence(self.exit, tuple(said.get(rank) for rank in range(self.spec.placement.ranks)))


def read_run(layout: AttemptLayout) -> RunEvidence:
    """Everything in the attempt's directory; what cannot be read is named in ``problems``, never raised.

    ``exit.json`` is read before the events: where it is there, the events were complete when they were read.
    """
    problems: list[str] = []
    root = str(layout.root)
    try:
        names = sorted(os.listdir(root))  # noqa: PTH208 - paths would cost as much as reading
    except (FileNotFoundError, NotADirectoryError):
        names = []
    except OSError as error:
        names = []
        problems.append(f"{layout.root.name[:40]}: {error.strerror}")
    spec = _read_model(RunSpec, root, "point.json", problems)
    if spec is not None and spec.placement.ranks > _MOST_RANKS:
        problems.append(f"point.json: more than {_MOST_RANKS} ranks")
        spec = None
    ended = _read_model(ExitRecord, root, "exit.json", problems)
    ranks, samples = [], {}
    for name in names:
        if not name.endswith(".jsonl"):
            continue
        if not is_text(name):
            problems.append(f"{as_text(name)}: the name is no UTF-8 text")
            continue
        if match := _EVENTS_NAME.fullmatch(name):
            ranks.append(read_rank(f"{root}/{name}", int(match[1]), problems))
        elif match := _SAMPLES_NAME.fullmatch(name):
            samples[match[1]] = _read_samples(f"{root}/{name}", problems)
    ranks.sort(key=lambda rank: rank.rank)
    return RunEvidence(spec, tuple(ranks), ended, samples, tuple(problems))


Model = TypeVar("Model", RunSpec, ExitRecord)


def _read_model(model: type[Model], root: str, name: str, problems: list[str]) -> Model | None:
    try:
        return model.model_validate_json(whole_file(f"{root}/{name}"))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        text = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        problems.append(f"{name}: {text}")
        return None


def _read_samples(path: str, problems: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    try:
        found += records(path)
    except OSError as error:
        problems.append(f"{os.path.basename(path)}: {error.strerror}")  # noqa: PTH119
    return found


def read_rank(path: PathText, rank: int, problems: list[str]) -> RankEvidence:
    """One rank's events; damaged lines and ill-formed steps are left out and counted."""
    torn: list[int] = []
    events: dict[str, list[dict[str, Any]]] = {}
    columns, number, name = StepColumns(), 0, os.path.basename(path)  # noqa: PTH119
    try:
        for lines in line_blocks(path):
            for line, record in zip(lines, records_of(lines), strict=True):
                number += 1
                if record is None:
                    if line.strip():
                        torn.append(number)
                    continue
                kind = record.get("event")
                if kind == "steps":
                    columns.add(record, line)
                elif isinstance(kind, str):
                    events.setdefault(kind, []).append(record)
    except OSError as error:
        problems.append(f"{name}: {error.strerror}")
    steps = columns.steps()
    problems += [f"{name}: a steps record has columns of unequal length or wrong type"] * columns.ill_formed
    return RankEvidence(rank, events, steps, tuple(torn))


def span_of(rank: RankEvidence, counter: str) -> float | None:
    """What a counter of the ``io`` events grew by between begin and end; None where either is not on record."""
    begin, end = (rank.io.get(at, _NOTHING).get(counter) for at in ("begin", "end"))
    if isinstance(begin, _NUMBERS) and isinstance(end, _NUMBERS) and end >= begin:
        return float(end - begin)
    return None


_NUMBERS = (int, float)
_NOTHING: Mapping[str, Any] = {}


def compact_json(value: Any) -> str:
    """``value`` as one line of JSON with sorted keys, for a table's cell."""
    return _ENCODER.encode(value)


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
