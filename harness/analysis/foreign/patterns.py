"""Pattern files: regular expressions with named groups that say what a program's log lines mean.

They are checked here by hand: importing pydantic takes as long as reading two hundred logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from harness.errors import ConfigError, Problem, UserError, nearest, of_the_system
from harness.files import read_file

SHIPPED = Path(__file__).parent / "patterns"
#: Groups with a meaning; any other group of a ``configuration`` expression is a column of its own.
MEASURED = ("images_per_s", "step_s", "epoch_s", "steps", "step", "epoch", "images", "deviation", "loss", "val_loss")
SCALES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0, "h": 3600.0, "images/s": 1.0}
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, eq=False)
class Pattern:
    """One program's log.

    ``steps`` match a line for each step (or for each few steps, or epoch), ``summary`` the line in which the program
    states its own result, ``configuration`` what it was told to do. A group ``X_unit`` beside a group ``X`` holds the
    unit as printed; otherwise ``units`` has it. ``source`` is where the format is defined. ``per_rank``: rates of steps
    are those of one rank; ``batch_per_rank``: so is batch_size. ``running_mean``: each step line gives the mean since
    the first step. ``once_after``: of the step lines after such a line only the first counts.
    """

    name: str
    description: str
    source: str = ""
    configuration: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    per_rank: bool = False
    batch_per_rank: bool = True
    running_mean: bool = False
    once_after: str | None = None

    @cached_property
    def once(self) -> re.Pattern[str] | None:
        """``once_after``, compiled."""
        return None if self.once_after is None else re.compile(self.once_after)

    @cached_property
    def expressions(self) -> dict[str, list[re.Pattern[str]]]:
        """The compiled expressions by the part of the pattern they stand in."""
        return {part: [re.compile(text) for text in getattr(self, part)] for part in _PARTS}


_PARTS = ("configuration", "steps", "summary")
_FIELDS = tuple(one.name for one in fields(Pattern))


def shipped() -> list[str]:
    """Names of the patterns that come with the program."""
    return sorted(path.stem for path in SHIPPED.glob("*.yml"))


def load(name: str) -> Pattern:
    """A shipped pattern by its name, or a pattern file by its path.

    Raises:
        UserError: for a name that is neither, and for a file that is not a pattern.
    """
    path = SHIPPED / f"{name}.yml" if name in shipped() else Path(name)
    try:
        entries = _entries(path)
        problems = [Problem(str(path), line, what, valid) for line, what, valid in _wrong(entries)]
    except RecursionError:
        raise UserError(f"{path}: values are nested too deeply; a pattern holds lists of texts, and units") from None
    except FileNotFoundError:
        raise UserError(f"no pattern {name!r} and no such file; {nearest(name, shipped())}") from None
    except OSError as error:
        raise UserError(of_the_system(error, path)) from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: cannot be read as YAML: {' '.join(str(error).split())}") from None
    if problems:
        raise ConfigError(problems)
    values = {name: entry.value for name, entry in entries.items()}
    return Pattern(**values | {part: tuple(values[part]) for part in _PARTS if part in values})


@dataclass(frozen=True)
class _Entry:
    """A field's value, the line it stands at, and those of the items of a list."""

    value: Any
    line: int
    lines: tuple[int, ...]


def _entries(path: Path) -> dict[str, _Entry]:
    loader = _Loader(read_file(path, pipes=True).decode())
    root = loader.get_single_node()
    if not isinstance(root, yaml.MappingNode):
        raise UserError(f"{path}: must hold `field: value` lines; fields are {', '.join(_FIELDS)}")
    held, nodes = loader.construct_document(root), {key.value: (key, node) for key, node in root.value}
    return {str(name): _entry(value, *nodes.get(str(name), (root, root))) for name, value in held.items()}


def _entry(value: Any, key: yaml.Node, node: yaml.Node) -> _Entry:
    items = node.value if isinstance(node, yaml.SequenceNode) else ()
    return _Entry(value, key.start_mark.line + 1, tuple(item.start_mark.line + 1 for item in items))


def _wrong(entries: Mapping[str, _Entry]) -> Iterator[tuple[int, str, str]]:
    """The line of each mistake, what is wrong, and what would be right."""
    for name in ("name", "description"):
        if name not in entries:
            yield 0, f"has no {name}", f"write {name}: …"
    for name, entry in entries.items():
        value, line = entry.value, entry.line
        if name not in _FIELDS:
            yield line, f"unknown field {name!r}", nearest(name, _FIELDS)
        elif name in _PARTS:
            yield from _wrong_expressions(name, entry)
        elif name == "units":
            yield from _wrong_units(entry)
        elif name == "once_after":
            yield from _wrong_expression(name, value, line)
        elif name in ("name", "description", "source"):
            if not isinstance(value, str):
                yield line, f"{name}: {value!r} is no text", "put it in quotes"
        elif not isinstance(value, bool):
            yield line, f"{name}: {value!r} is neither true nor false", ""


def _wrong_expressions(part: str, entry: _Entry) -> Iterator[tuple[int, str, str]]:
    if not isinstance(entry.value, list):
        yield entry.line, f"{part}: must be a list of regular expressions", "write - '…' lines below it"
        return
    for text, line in zip(entry.value, entry.lines, strict=True):
        wrong = list(_wrong_expression(part, text, line))
        yield from wrong or (_wrong_groups(part, text, line) if part != "configuration" else ())


def _wrong_expression(where: str, text: Any, line: int) -> Iterator[tuple[int, str, str]]:
    if not isinstance(text, str):
        yield line, f"{where}: {text!r} is no text", "put it in quotes"
        return
    try:
        re.compile(text)
    except re.error as error:
        yield line, f"{where}: {text!r} is not a regular expression: {error}", ""


def _wrong_groups(part: str, text: str, line: int) -> Iterator[tuple[int, str, str]]:
    groups = set(re.compile(text).groupindex)
    if not groups & {"images_per_s", "step_s", "epoch_s"}:
        what = f"{part}: {text!r} has no group images_per_s, step_s or epoch_s"
        yield line, what, "write it as (?P<images_per_s>…)"
    for group in sorted(groups):
        if group.removesuffix("_unit") not in MEASURED:
            yield line, f"{part}: unknown group {group!r}", nearest(group, MEASURED)


def _wrong_units(entry: _Entry) -> Iterator[tuple[int, str, str]]:
    if not isinstance(entry.value, dict):
        yield entry.line, "units: must hold `group: unit` pairs", "such as {step_s: ms}"
        return
    for group, unit in entry.value.items():
        if not isinstance(unit, str) or unit not in SCALES:
            yield entry.line, f"units: {group}: unknown unit {unit!r}", f"valid: {', '.join(SCALES)}"
