"""Log text → segments: the lines of one configuration, with what its steps and its summary say. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from harness.analysis.foreign.literals import literal_of
from harness.analysis.foreign.patterns import SCALES, Pattern

#: Terminal colours and cursor movements.
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
#: How a progress bar goes back to write over its line.
_BACK = re.compile(r"[\r\x08]+")
_OVERWRITTEN = re.compile(r"[\x1b\r\x08]")
#: How mpirun and horovodrun mark whose line it is: ``[1,0]<stdout>:``, ``[prterun-n1-7@1,0]<stdout>: ``.
_RANK = re.compile(r"^\[(?:[^\]]*@)?[\d,]+\]<std(?:out|err)>:\s?", re.MULTILINE)
#: What makes a line a step: without a number in one of these it was cut off, or written over by another rank.
_TIMED = frozenset({"images_per_s", "step_s", "epoch_s"})
Value = float | str


@dataclass
class Segment:
    """One configuration's part of a log; ``line`` is where it begins, from 1."""

    line: int
    configuration: dict[str, Value] = field(default_factory=dict)
    steps: list[dict[str, float]] = field(default_factory=list)
    summary: dict[str, float] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        return bool(self.steps or self.summary)


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their number, without marks of ranks; of a line that a progress bar wrote over, each version."""
    if ">:" in text:
        text = _RANK.sub("", text)
    lines = enumerate(text.split("\n"), 1)
    if not _OVERWRITTEN.search(text):
        yield from lines
        return
    for number, line in lines:
        for version in _BACK.split(_TERMINAL.sub("", line)):
            yield number, version


def segments(text: str, pattern: Pattern, given: Mapping[str, Value] | None = None) -> list[Segment]:
    """The log's segments that hold a measurement.

    A configuration line after a measured one begins a new segment; so does a summary's successor. ``given`` is what the
    user says about all of them.
    """
    found = _split(lines_of(text), pattern, _readers(text, pattern), given or {})
    return [segment for segment in found if segment.measured]


def _split(
    lines: Iterable[tuple[int, str]], pattern: Pattern, readers: list[list[_Reader]], given: Mapping[str, Value]
) -> Iterator[Segment]:
    current, marked, counts, once = Segment(1, dict(given)), False, True, pattern.once
    for number, line in lines:
        if once is not None and once.search(line):
            marked = counts = True
        for part, values in _matches(line, readers):
            if part == "configuration":
                if current.measured:
                    yield current
                    current = Segment(number, dict(given))
                current.configuration |= values
            elif part == "summary":
                current.summary |= cast(dict[str, float], values)
            elif counts and not _TIMED.isdisjoint(values):
                if current.summary and not _late(values, current):
                    # steps after a result, without a word on the configuration: the same one, run again
                    yield current
                    current = Segment(number, dict(current.configuration))
                current.steps.append(cast(dict[str, float], values))
                counts = not marked
    yield current


def _late(values: Mapping[str, Value], segment: Segment) -> bool:
    """Whether a step line after a result repeats the last step: another rank's, which wrote it a little later."""
    return bool(segment.steps) and "step" in values and segment.steps[-1].get("step") == values["step"]


@dataclass(frozen=True)
class _Reader:
    """One expression; of each of its groups the name, its place, the place of its unit's group, and its own scale."""

    part: str
    literal: str
    search: Callable[[str], re.Match[str] | None]
    groups: tuple[tuple[str, int, int | None, float], ...]

    def values(self, match: re.Match[str]) -> dict[str, Value]:
        """What its groups hold; words only where they are configuration."""
        texts, values = match.groups(), dict[str, Value]()
        for name, place, unit_place, scale in self.groups:
            text = texts[place]
            if text is None:
                continue
            if unit_place is not None and (unit := texts[unit_place]):
                scale = SCALES.get(unit, 1.0)
            try:
                values[name] = float(text.replace(",", "") if "," in text else text) * scale
            except ValueError:
                if self.part == "configuration":
                    values[name] = text.strip()
        return values


def _readers(text: str, pattern: Pattern) -> list[list[_Reader]]:
    """The expressions of each part of the pattern that this log can match at all."""
    plain = _TERMINAL.sub("", text) if "\x1b" in text else text
    return [
        [_reader(part, expression, pattern) for expression in expressions if literal_of(expression.pattern) in plain]
        for part, expressions in pattern.expressions.items()
    ]


def _reader(part: str, expression: re.Pattern[str], pattern: Pattern) -> _Reader:
    places = {name: number - 1 for name, number in expression.groupindex.items()}
    groups = [
        (name, place, places.get(f"{name}_unit"), SCALES.get(pattern.units.get(name) or "s", 1.0))
        for name, place in places.items()
        if not name.endswith("_unit")
    ]
    return _Reader(part, literal_of(expression.pattern), expression.search, tuple(groups))


def _matches(line: str, readers: list[list[_Reader]]) -> list[tuple[str, dict[str, Value]]]:
    """What a line says; each of its configuration's expressions may add to it, of the others the first one counts."""
    found = []
    for of_part in readers:
        for reader in of_part:
            if reader.literal in line and (match := reader.search(line)):
                found.append((reader.part, reader.values(match)))
                if reader.part != "configuration":
                    break
    return found
