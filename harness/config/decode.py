"""Marked YAML to the vocabulary's models, field by field and by each field's declared type.

One rule maps a model's fields to the keys a person writes: a field ``X_s`` is written ``X`` with a duration in words,
``X_bytes`` is written ``X`` with a size in words; all other fields keep their names. Problems are collected, not
raised, so that a file's mistakes are all reported together.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, Any, Final, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from harness.config import scalars
from harness.config.yaml_marks import Entry, Mapping, Node, Scalar, Sequence, is_null
from harness.errors import ConfigError, Problem, nearest


class _Invalid:
    """The mark of a value that could not be decoded; its problem is in the list already."""


INVALID: Final = _Invalid()

_SUFFIXES: dict[str, Callable[[Scalar], Any]] = {"_s": scalars.as_duration_s, "_bytes": scalars.as_bytes}
_SCALARS: dict[Any, Callable[[Scalar], Any]] = {
    bool: scalars.as_bool,
    int: scalars.as_int,
    float: scalars.as_float,
    str: scalars.as_text,
}
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}

Special = Callable[[Node], Any]


def user_key(field: str) -> str:
    """The key under which a person writes a field: ``max_walltime_s`` is written ``max_walltime``."""
    for suffix in _SUFFIXES:
        if field.endswith(suffix):
            return field.removesuffix(suffix)
    return field


class Decoder:
    """Decodes one file, collecting its problems."""

    def __init__(self, file: str):
        self.file = file
        self.problems: list[Problem] = []

    def problem(self, line: int, what: str, valid: str = "") -> _Invalid:
        self.problems.append(Problem(self.file, line, what, valid))
        return INVALID

    def finish(self) -> None:
        """Raise all problems found so far, in the order of their lines."""
        if self.problems:
            raise ConfigError(sorted(self.problems, key=lambda p: p.line))

    def mapping(self, node: Node, what: str) -> dict[str, Entry]:
        """The entries of a mapping; nothing at all counts as empty, anything else is a problem."""
        if isinstance(node, Mapping):
            return node.entries
        if not is_null(node):
            self.problem(node.line, f"{what} takes `key: value` lines, not {describe(node)}")
        return {}

    def sequence(self, node: Node, what: str) -> tuple[Node, ...]:
        """The items of a list; nothing at all counts as empty, anything else is a problem."""
        if isinstance(node, Sequence):
            return node.items
        if not is_null(node):
            self.problem(node.line, f"{what} takes a list, not {describe(node)}", "write [a, b] or one `- item` a line")
        return ()

    def unknown_key(self, key: str, line: int, what: str, valid: Iterable[str]) -> None:
        self.problem(line, f"unknown key {key!r} in {what}", nearest(key, sorted(valid)))

    def fields(
        self,
        node: Node,
        model: type[BaseModel],
        what: str,
        special: dict[str, Special] | None = None,
        hidden: Iterable[str] = (),
    ) -> dict[str, Any]:
        """The fields of ``model`` given in a mapping.

        ``special`` decodes a user's key by other means; ``hidden`` fields are not the author's to write.
        """
        special = special or {}
        known = {user_key(name): (name, info) for name, info in model.model_fields.items() if name not in hidden}
        values: dict[str, Any] = {}
        entries = self.mapping(node, what)
        for key, entry in entries.items():
            if key in special:
                value = special[key](entry.value)
            elif key not in known:
                self.unknown_key(key, entry.line, what, {*known, *special})
                continue
            else:
                value = self._field(entry.value, *known[key], f"{key}")
            if value is not INVALID:
                values[known[key][0] if key in known else key] = value
        for key, (_, info) in known.items():
            if info.is_required() and key not in entries:
                self.problem(node.line, f"{what} lacks the key {key!r}", info.description or "")
        return values

    def model(self, node: Node, model: type[BaseModel], what: str, special: dict[str, Special] | None = None) -> Any:
        """An instance of ``model``, or INVALID."""
        before = len(self.problems)
        values = self.fields(node, model, what, special)
        return INVALID if len(self.problems) > before else model(**values)

    def _field(self, node: Node, name: str, info: FieldInfo, what: str) -> Any:
        annotation = full_annotation(info)
        for suffix, convert in _SUFFIXES.items():
            if name.endswith(suffix):
                return self.scalar(node, convert, what, optional=_is_optional(info.annotation))
        return self.decode(node, annotation, what)

    def decode(self, node: Node, annotation: Any, what: str) -> Any:
        """A value of type ``annotation`` (the types that the vocabulary uses), or INVALID."""
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            value = self.decode(node, arguments[0], what)
            return value if value is INVALID else self._constrained(node, annotation, value, what)
        if origin in (Union, types.UnionType):
            if type(None) in arguments and is_null(node):
                return None
            return self.decode(node, next(a for a in arguments if a is not type(None)), what)
        if origin is Literal:
            return self._choice(node, arguments, what)
        if origin is tuple:
            items = [self.decode(item, arguments[0], what) for item in self.sequence(node, what)]
            return INVALID if INVALID in items else tuple(items)
        if origin is dict:
            return self._dict(node, arguments[1], what)
        if annotation in (list, tuple):
            return self._plain_list(node, what)
        if annotation in _SCALARS:
            return self.scalar(node, _SCALARS[annotation], what, kind=_KINDS[annotation])
        return self.model(node, annotation, what)

    def scalar(
        self, node: Node, convert: Callable[[Scalar], Any], what: str, kind: str = "one value", optional: bool = False
    ) -> Any:
        if optional and is_null(node):
            return None
        if not isinstance(node, Scalar):
            return self.problem(node.line, f"{what} takes {kind}, not {describe(node)}")
        if is_null(node) and convert is not scalars.as_text:
            return self.problem(node.line, f"{what} is empty", f"give {kind}")
        try:
            return convert(node)
        except ValueError as error:
            return self.problem(node.line, f"{what}: {error}")

    def _choice(self, node: Node, choices: tuple[Any, ...], what: str) -> Any:
        text = self.scalar(node, scalars.as_text, what)
        if text is INVALID or text in choices:
            return text
        return self.problem(node.line, f"{what}: {text!r} is not known", nearest(text, choices))

    def _dict(self, node: Node, annotation: Any, what: str) -> Any:
        decoded = {k: self.decode(e.value, annotation, f"{what}.{k}") for k, e in self.mapping(node, what).items()}
        return INVALID if INVALID in decoded.values() else decoded

    def _plain_list(self, node: Node, what: str) -> Any:
        items = [self.scalar(item, scalars.as_any, what) for item in self.sequence(node, what)]
        return INVALID if INVALID in items else items

    def _constrained(self, node: Node, annotation: Any, value: Any, what: str) -> Any:
        try:
            return adapter(annotation).validate_python(value, strict=True)
        except ValidationError as error:
            wanted = error.errors()[0]["msg"].replace("Input should be", "it must be")
            return self.problem(node.line, f"{what}: {value!r} is not allowed", wanted)


def describe(node: Node) -> str:
    """What a node is, for messages."""
    if isinstance(node, Mapping):
        return "a mapping"
    return "a list" if isinstance(node, Sequence) else f"{node.text!r}"


def _is_optional(annotation: Any) -> bool:
    return type(None) in get_args(annotation)


@cache
def adapter(annotation: Any) -> TypeAdapter[Any]:
    """Pydantic's validator of a type."""
    return TypeAdapter(annotation)


def full_annotation(info: FieldInfo) -> Any:
    """The annotation with the constraints that pydantic has moved into the field's metadata."""
    parts = (info.annotation, *info.metadata)
    return cast(Any, Annotated)[parts] if info.metadata else info.annotation
