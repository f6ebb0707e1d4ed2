"""Scalars by declared type: what the author's text means where a bool, a number, a name or a duration is wanted.

Each function takes the marked scalar and returns the value, or raises ValueError with what is wrong and what to
write instead. Ambiguous text is refused rather than guessed.
"""

from __future__ import annotations

import re

from harness.config.yaml_marks import Scalar
from harness.units import parse_bytes, parse_duration_s

_DECIMAL = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BOOLS = {"true": True, "false": False}
_YAML_1_1_BOOLS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


def as_bool(node: Scalar) -> bool:
    word = node.text.lower()
    if node.quoted:
        raise ValueError(f"{node.text!r} is text in quotes; write true or false without quotes")
    if word in _BOOLS:
        return _BOOLS[word]
    hint = f"write {_YAML_1_1_BOOLS[word]}" if word in _YAML_1_1_BOOLS else "write true or false"
    raise ValueError(f"{node.text!r} is neither true nor false; {hint}")


def as_int(node: Scalar) -> int:
    text = node.text
    if node.quoted and _DECIMAL.fullmatch(text):
        raise ValueError(f"{text!r} is text in quotes; write {int(text)} without quotes")
    if _DECIMAL.fullmatch(text):
        if len(text) > 18:
            raise ValueError(f"{text} is too large")
        return int(text)
    if re.fullmatch(r"[+-]?0[0-9]+", text):
        raise ValueError(f"{text} is ambiguous: YAML reads a leading 0 as octal; write it without the leading 0")
    if _is_sexagesimal(text):
        raise ValueError(f"{text} is ambiguous: YAML reads it in base 60; write a plain whole number")
    raise ValueError(f"{text!r} is no whole number; write it in decimal digits")


def as_float(node: Scalar) -> float:
    text = node.text
    if node.quoted and _FLOAT.fullmatch(text):
        raise ValueError(f"{text!r} is text in quotes; write {text} without quotes")
    if _is_sexagesimal(text):
        raise ValueError(f"{text} is ambiguous: YAML reads it in base 60; write a plain number")
    if text.lstrip("+-").lower() in {".inf", ".nan", "inf", "nan"}:
        raise ValueError(f"{text} is not finite; write a plain number")
    if re.fullmatch(r"[+-]?0[0-9]+", text):
        raise ValueError(f"{text} is ambiguous: YAML reads a leading 0 as octal; write it without the leading 0")
    if not _FLOAT.fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large for a number")
    return value


def as_text(node: Scalar) -> str:
    """The text as written: ``off``, ``3.10`` and ``0100`` are fine names. Only nothing and null are refused."""
    if node.kind == "null":
        raise ValueError(f"{node.text or 'nothing'} is no text; write a value, in quotes if it is meant literally")
    if "\0" in node.text:
        raise ValueError("the text holds a NUL character, which no file name or command may have")
    return node.text


def as_duration_s(node: Scalar) -> int:
    """Seconds. An unquoted ``12:00:00`` is refused: any other YAML tool would read it as 43200 or worse."""
    if not node.quoted and ":" in node.text:
        raise ValueError(f'{node.text} without quotes is a number in base 60 to YAML; write "{node.text}" in quotes')
    seconds = parse_duration_s(node.text)
    if seconds == 0:
        raise ValueError(f"{node.text!r} is no time at all; write at least 1s")
    return seconds


def as_bytes(node: Scalar) -> int:
    size = parse_bytes(node.text)
    if size == 0:
        raise ValueError(f"{node.text!r} is no memory at all; write at least 1mb")
    return size


def as_any(node: Scalar) -> bool | int | float | str:
    """A scalar of no declared type, as inside a list option: what YAML 1.1 and 1.2 read alike, else a refusal."""
    if node.quoted:
        return as_text(node)
    if node.text.lower() in _YAML_1_1_BOOLS:
        raise ValueError(f"{node.text} is ambiguous: YAML reads it as a boolean; write true, false, or quote it")
    if node.text.lower() in _BOOLS:
        return as_bool(node)
    if node.kind == "int" or _DECIMAL.fullmatch(node.text):
        return as_int(node)
    if node.kind == "float" or _FLOAT.fullmatch(node.text):
        return as_float(node)
    return as_text(node)


def _is_sexagesimal(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?", text) is not None
