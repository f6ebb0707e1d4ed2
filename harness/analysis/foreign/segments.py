"""Log text → segments: the lines of one configuration, with what its steps and its summary say. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from harness.analysis.foreign.patterns import SCALES, Pattern

#: Terminal colours and cursor movements.
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
#: How a progress bar goes back to write over its line.
_BACK = re.compile(r"[\r\x08]+")
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
    for number, line in enumerate(text.split("\n"), 1):
        for version in _BACK.split(_TERMINAL.sub("", line)):
            yield number, version


def segments(text: str, pattern: Pattern, given: Mapping[str, Value] | None = None) -> list[Segment]:
    """The log's segments that hold a measurement.

    A configuration line after a measured one begins a new segment; so does a summary's successor. ``given`` is what the
    user says about all of them.
    """
    return [s for s in _split(lines_of(text), pattern, given or {}) if s.measured]


def _split(lines: Iterable[tuple[int, str]], pattern: Pattern, given: Mapping[str, Value]) -> Iterator[Segment]:
    current, marked, counts = Segment(1, dict(given)), False, True
    for number, line in lines:
        if pattern.once is not None and pattern.once.search(line):
            marked = counts = True
        for part, values in _matches(line, pattern):
            if part == "configuration":
                if current.measured:
                    yield current
                    current = Segment(number, dict(given))
                current.configuration |= values
            elif part == "summary":
                current.summary |= _numbers(values)
            elif counts and _TIMED & _numbers(values).keys():
                if current.summary and not _late(values, current):
                    # steps after a result, without a word on the configuration: the same one, run again
                    yield current
                    current = Segment(number, dict(current.configuration))
                current.steps.append(_numbers(values))
                counts = not marked
    yield current


def _late(values: Mapping[str, Value], segment: Segment) -> bool:
    """Whether a step line after a result repeats the last step: another rank's, which wrote it a little later."""
    return bool(segment.steps) and "step" in values and segment.steps[-1].get("step") == values["step"]


def _matches(line: str, pattern: Pattern) -> Iterator[tuple[str, dict[str, Value]]]:
    """What a line says; each of its configuration's expressions may add to it, of the others the first one counts."""
    for part, expressions in pattern.expressions.items():
        for expression in expressions:
            if match := expression.search(line):
                found = {name: text for name, text in match.groupdict().items() if text is not None}
                yield part, {name: _value(name, found, pattern) for name in found if not name.endswith("_unit")}
                if part != "configuration":
                    break


def _value(name: str, found: Mapping[str, str], pattern: Pattern) -> Value:
    try:
        number = float(found[name].replace(",", ""))
    except ValueError:
        return found[name].strip()
    unit = found.get(f"{name}_unit") or pattern.units.get(name) or "s"
    return number * SCALES.get(unit, 1.0)


def _numbers(values: Mapping[str, Value]) -> dict[str, float]:
    return {name: value for name, value in values.items() if isinstance(value, float)}
