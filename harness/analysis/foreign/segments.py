"""Log text → segments: the lines of one configuration, with what its steps and its summary say. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import repeat
from typing import cast

from harness.analysis.foreign.line_search import LineSearch
from harness.analysis.foreign.log_text import LogText
from harness.analysis.foreign.patterns import SCALES, Pattern
from harness.analysis.foreign.steps import TIMED, USED, Column, Steps, timed

Value = float | str


@dataclass
class Segment:
    """One configuration's part of a log; ``line`` is where it begins, from 1."""

    line: int
    configuration: dict[str, Value] = field(default_factory=dict)
    steps: Steps = field(default_factory=Steps)
    summary: dict[str, float] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        return bool(len(self.steps) or self.summary)


def segments(text: str, pattern: Pattern, given: Mapping[str, Value] | None = None) -> list[Segment]:
    """The log's segments that hold a measurement.

    A configuration line after a measured one begins a new segment; so does a summary's successor. ``given`` is what the
    user says about all of them.
    """
    log = LogText(text)
    return [segment for segment in _Splitter(log, pattern, given or {}).segments() if segment.measured]


#: What a line is taken for, in this order where it is several; the configuration's expressions follow one another.
_MARK, _CONFIGURATION, _STEP, _SUMMARY = range(4)


@dataclass(frozen=True)
class _Said:
    """What the line that begins at ``place`` says, but for steps."""

    place: int
    kind: int
    values: Mapping[str, Value]


class _Splitter:
    """Step lines between two other lines that mean something are read at once."""

    def __init__(self, log: LogText, pattern: Pattern, given: Mapping[str, Value]):
        self._log, self._given = log, given
        readers = _readers(pattern)
        self._step_readers = [reader for reader in readers["steps"] if reader.lines.may_be_in(log.text)]
        self._said = [*_marks(pattern.once, log.text), *_others(readers, log.text)]
        self._said.sort(key=lambda said: (said.place, said.kind))
        self._current = Segment(1, dict(given))
        self._marked, self._counts = False, True

    def segments(self) -> Iterator[Segment]:
        """All of them, measured or not."""
        begin = 0
        for said in self._said:
            end = self._log.after(said.place) if said.kind > _STEP else said.place
            yield from self._steps(begin, end)
            begin = end
            if said.kind == _MARK:
                self._marked = self._counts = True
            elif said.kind == _SUMMARY:
                self._current.summary |= cast(Mapping[str, float], said.values)
            else:
                if self._current.measured:
                    yield self._begin(said.place, self._given)
                self._current.configuration |= said.values
        yield from self._steps(begin, len(self._log.text))
        yield self._current

    def _begin(self, place: int, configuration: Mapping[str, Value]) -> Segment:
        """The segment that ends where the next one begins."""
        ended, self._current = self._current, Segment(self._log.number(place), dict(configuration))
        return ended

    def _steps(self, begin: int, end: int) -> Iterator[Segment]:
        """Takes the step lines between two places; gives the segment that ended there, if one did."""
        if begin == end or not self._step_readers or not self._counts:
            return
        if len(self._step_readers) == 1 and not self._current.summary:
            columns = timed(self._step_readers[0].columns(self._log.text, begin, end))
            self._take({name: column[:1] for name, column in columns.items()} if self._marked else columns)
            return
        for place, values in self._step_lines(begin, end):
            if not any(name in values for name in TIMED):
                continue
            if self._current.summary and not _late(values, self._current):
                # steps after a result, without a word on the configuration: the same one, run again
                yield self._begin(place, self._current.configuration)
                yield from self._steps(place, end)
                return
            self._take({name: [value] for name, value in values.items()})
            if self._marked:
                return

    def _take(self, columns: Mapping[str, Column]) -> None:
        if any(columns.values()):
            self._current.steps.add(columns)
            self._counts = not self._marked

    def _step_lines(self, begin: int, end: int) -> Iterator[tuple[int, dict[str, float]]]:
        """Where step lines begin, and what they say; of several expressions that know a line the first one counts."""
        text, found = self._log.text, dict[int, tuple[_Reader, re.Match[str]]]()
        for reader in self._step_readers:
            for place, match in reader.lines.each(text, begin, end):
                found.setdefault(place, (reader, match))
        # what they say is read when it is asked for: often the first of them settles how the others are read
        for place in sorted(found):
            reader, match = found[place]
            yield place, cast(dict[str, float], reader.values(match))


def _late(values: Mapping[str, float], segment: Segment) -> bool:
    """Whether a step line after a result repeats the last step: another rank's, which wrote it a little later."""
    return len(segment.steps) > 0 and "step" in values and segment.steps.row(-1).get("step") == values["step"]


@dataclass(frozen=True)
class _Reader:
    """One expression; of each of its groups the name, its place, the place of its unit's group, and its own scale."""

    kind: int
    lines: LineSearch
    groups: tuple[tuple[str, int, int | None, float], ...]

    def values(self, match: re.Match[str]) -> dict[str, Value]:
        """What its groups hold; words only where they are configuration."""
        texts, values = match.groups(), dict[str, Value]()
        for name, place, unit_place, scale in self.groups:
            unit = None if unit_place is None else texts[unit_place]
            if (number := _number(texts[place])) is not None:
                values[name] = number * _factor(unit, scale)
            elif self.kind == _CONFIGURATION and (text := texts[place]) is not None:
                values[name] = text.strip()
        return values

    def columns(self, text: str, begin: int, end: int) -> dict[str, Column]:
        """The numbers of all lines that it matches between two line begins."""
        texts = list(zip(*self.lines.groups(text, begin, end), strict=True))
        if not texts:
            return {}
        return {
            name: _numbers(texts[place], None if unit_place is None else texts[unit_place], scale)
            for name, place, unit_place, scale in self.groups
        }


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text.replace(",", "") if "," in text else text)
    except ValueError:
        return None


def _numbers(texts: Sequence[str | None], units: Sequence[str | None] | None, scale: float) -> Column:
    values: Column
    try:
        values = list(map(float, cast(Sequence[str], texts)))
    except (TypeError, ValueError):
        values = list(map(_number, texts))
    if units is None and scale == 1.0:
        return values
    factors = (_factor(unit, scale) for unit in units or repeat(None, len(values)))
    return [None if value is None else value * factor for value, factor in zip(values, factors, strict=True)]


def _factor(unit: str | None, scale: float) -> float:
    """What a number is multiplied by: as its unit says, where the line has one, else as the pattern says."""
    return SCALES.get(unit, 1.0) if unit else scale


@cache
def _readers(pattern: Pattern) -> dict[str, list[_Reader]]:
    kinds = {"configuration": _CONFIGURATION, "steps": _STEP, "summary": _SUMMARY}
    return {
        part: [_reader(kinds[part], expression, pattern) for expression in expressions]
        for part, expressions in pattern.expressions.items()
    }


def _reader(kind: int, expression: re.Pattern[str], pattern: Pattern) -> _Reader:
    places = {name: number - 1 for name, number in expression.groupindex.items()}
    groups = [
        (name, place, places.get(f"{name}_unit"), SCALES.get(pattern.units.get(name) or "s", 1.0))
        for name, place in places.items()
        if not name.endswith("_unit") and (kind != _STEP or name in USED)
    ]
    return _Reader(kind, LineSearch(expression), tuple(groups))


def _marks(once: re.Pattern[str] | None, text: str) -> Iterator[_Said]:
    if once is not None:
        yield from (_Said(place, _MARK, {}) for place, _ in _lines_once(once).each(text))


_lines_once = cache(LineSearch)


def _others(readers: Mapping[str, Sequence[_Reader]], text: str) -> Iterator[_Said]:
    """Lines of the configuration, each expression of which counts, and of results, of which the first one does."""
    for reader in readers["configuration"]:
        for place, match in reader.lines.each(text):
            yield _Said(place, _CONFIGURATION, reader.values(match))
    results = dict[int, _Said]()
    for reader in readers["summary"]:
        for place, match in reader.lines.each(text):
            if place not in results:
                results[place] = _Said(place, _SUMMARY, reader.values(match))
    yield from results.values()
