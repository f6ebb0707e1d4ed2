"""YAML text as a tree whose every value remembers its line and its original text.

PyYAML resolves plain scalars by YAML 1.1: ``12:00:00`` becomes 43200, ``3.10`` becomes 3.1, ``off`` becomes False,
``0100`` becomes 64, and ``1e-3`` stays text. Only its parser is used here; what a scalar means is decided later, from
its text and the type that is wanted (:mod:`harness.config.decode`). Repeated keys, which PyYAML lets win silently,
are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import yaml

from harness.errors import ConfigError, Problem
from harness.files import read_file

MAX_FILE_BYTES = 1_000_000
MAX_VALUES = 100_000
MAX_DEPTH = 30

#: characters that YAML 1.1 does not allow unescaped (section 5.1); as a regular expression they took 2 ms to compile
_CONTROLS = frozenset(map(chr, (*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)))
_CONTROLS -= set("\t\n\r\x85")
_TAG_PREFIX = "tag:yaml.org,2002:"
_SCALAR_TAGS = {"str", "int", "float", "bool", "null", "timestamp", "merge", "value"}
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Scalar(NamedTuple):
    """``kind`` is what YAML 1.1 would make of the text: str, int, float, bool, null or timestamp."""

    text: str
    quoted: bool
    kind: str
    line: int


class Sequence(NamedTuple):
    items: tuple[Node, ...]
    line: int


class Entry(NamedTuple):
    """A value in a mapping, with the line of its key."""

    line: int
    value: Node


class Mapping(NamedTuple):
    entries: dict[str, Entry]
    line: int


Node = Scalar | Sequence | Mapping


def is_null(node: Node) -> bool:
    """Whether the author wrote nothing, ``null`` or ``~``."""
    return isinstance(node, Scalar) and node.kind == "null"


def read_mapping(path: Path) -> Mapping:
    """The mapping that a YAML file holds.

    Raises:
        ConfigError: the file cannot be read, is no YAML, or holds something else.
    """
    return parse_mapping(_read_text(path), str(path))


def parse_mapping(text: str, file: str) -> Mapping:
    """The mapping in ``text``; ``file`` is named in problems."""
    node = parse(text, file)
    if not isinstance(node, Mapping):
        what = "the file is empty" if node is None or is_null(node) else "the file holds no mapping"
        raise ConfigError([Problem(file, 0 if node is None else node.line, what, "it must hold `key: value` lines")])
    return node


def parse(text: str, file: str) -> Node | None:
    """The tree of one YAML document, None for an empty one.

    Raises:
        ConfigError: with every repeated key, or the first syntax error.
    """
    if not _CONTROLS.isdisjoint(text):
        place = next(place for place, char in enumerate(text) if char in _CONTROLS)
        line = text.count("\n", 0, place) + 1
        raise ConfigError([Problem(file, line, f"holds the control character U+{ord(text[place]):04X}", "remove it")])
    try:
        _check_depth(text, file)
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_syntax_problem(error, text, file)]) from None
    except yaml.YAMLError as error:
        raise ConfigError([Problem(file, 0, f"not readable as YAML: {error}")]) from None
    if root is None:
        return None
    reader = _Reader(file)
    tree = reader.convert(root)
    if reader.problems:
        raise ConfigError(reader.problems)
    return tree


def _read_text(path: Path) -> str:
    file = str(path)
    try:
        data = read_file(path, MAX_FILE_BYTES + 1, pipes=True)
        size = max(len(data), path.stat().st_size)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError([Problem(file, 0, f"cannot be read: {reason}", "name a readable YAML file")]) from None
    if size > MAX_FILE_BYTES:
        raise ConfigError([Problem(file, 0, f"has {size} bytes, more than the {MAX_FILE_BYTES} a YAML file may have")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError([Problem(file, line, "is not UTF-8 text", "save the file in UTF-8")]) from None


def _check_depth(text: str, file: str) -> None:
    """Refuse deep nesting before PyYAML's recursive composer meets it: it would end the interpreter's stack."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                line = event.start_mark.line + 1 if event.start_mark else 0
                raise ConfigError([Problem(file, line, f"values are nested deeper than {MAX_DEPTH} levels")])
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    what = " ".join(part for part in (error.context, error.problem) if part)
    lines = text.splitlines()
    tab = mark is not None and mark.line < len(lines) and "\t" in lines[mark.line]
    valid = "indent with spaces, not tabs" if tab else ""
    return Problem(file, mark.line + 1 if mark else 0, f"not readable as YAML: {what}", valid)


class _Reader:
    """Converts PyYAML's nodes, collecting problems; aliases are followed, but neither in circles nor without end."""

    def __init__(self, file: str):
        self.file = file
        self.problems: list[Problem] = []
        self._open: set[int] = set()
        self._values = 0

    def convert(self, node: yaml.Node) -> Node:
        line = node.start_mark.line + 1
        self._values += 1
        if self._values > MAX_VALUES:
            raise ConfigError(
                [Problem(self.file, line, f"holds more than {MAX_VALUES} values, aliases counted in full")]
            )
        if id(node) in self._open:
            raise ConfigError([Problem(self.file, line, "an alias refers to a value that contains it")])
        self._open.add(id(node))
        try:
            return self._convert(node, line)
        finally:
            self._open.discard(id(node))

    def _convert(self, node: yaml.Node, line: int) -> Node:
        tag = node.tag.removeprefix(_TAG_PREFIX)
        if isinstance(node, yaml.ScalarNode):
            if tag not in _SCALAR_TAGS:
                self._refuse_tag(node, line)
            # the C parser calls the plain style '', the Python parser None
            return Scalar(node.value, bool(node.style), "str" if node.style else tag, line)
        if isinstance(node, yaml.SequenceNode):
            if tag != "seq":
                self._refuse_tag(node, line)
            return Sequence(tuple(self.convert(item) for item in node.value), line)
        if tag != "map":
            self._refuse_tag(node, line)
        return self._mapping(node, line)

    def _mapping(self, node: yaml.Node, line: int) -> Mapping:
        own: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key_node, value_node in node.value:
            key_line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(Problem(self.file, key_line, "a key must be a plain word"))
                continue
            value = self.convert(value_node)
            if key_node.tag == _TAG_PREFIX + "merge":
                self._merge(merged, value, key_line)
            elif key_node.value in own:
                first = own[key_node.value].line
                what = f"key {key_node.value!r} is repeated; it stands on line {first} already"
                self.problems.append(Problem(self.file, key_line, what, "keep one of them"))
            else:
                own[key_node.value] = Entry(key_line, value)
        return Mapping({**merged, **own}, line)

    def _merge(self, merged: dict[str, Entry], value: Node, line: int) -> None:
        """Add what ``<<:`` brings; of several mappings the first one wins, as the merge key's specification says."""
        for source in value.items if isinstance(value, Sequence) else (value,):
            if isinstance(source, Mapping):
                for key, entry in source.entries.items():
                    merged.setdefault(key, entry)
            else:
                self.problems.append(Problem(self.file, line, "<<: takes an alias of a mapping, or a list of them"))

    def _refuse_tag(self, node: yaml.Node, line: int) -> None:
        tag = node.tag.replace(_TAG_PREFIX, "!!")
        self.problems.append(Problem(self.file, line, f"the YAML tag {tag} is not used here", "write the plain value"))
