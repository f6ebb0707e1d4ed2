"""What an author's text means under each declared type; the traps of YAML 1.1 one by one."""

from __future__ import annotations

import pytest
import yaml

from harness.config import scalars
from harness.config.yaml_marks import Mapping, Scalar, parse_mapping


def scalar(text: str) -> Scalar:
    tree = parse_mapping(f"key: {text}\n", "t.yml")
    assert isinstance(tree, Mapping)
    node = tree.entries["key"].value
    assert isinstance(node, Scalar)
    return node


@pytest.mark.parametrize(
    ("text", "loaded"),
    [("12:00:00", 43200), ("3.10", 3.1), ("off", False), ("0100", 64), ("1e-3", "1e-3"), ("1_000", 1000)],
)
def test_the_traps_are_real(text: str, loaded: object) -> None:
    assert yaml.safe_load(text) == loaded


@pytest.mark.parametrize(
    ("convert", "text", "value"),
    [
        (scalars.as_text, "3.10", "3.10"),
        (scalars.as_text, "off", "off"),
        (scalars.as_text, "0100", "0100"),
        (scalars.as_text, "2026-01-01", "2026-01-01"),
        (scalars.as_text, '"null"', "null"),
        (scalars.as_text, '""', ""),
        (scalars.as_text, "données $(id) 'x'", "données $(id) 'x'"),
        (scalars.as_int, "0", 0),
        (scalars.as_int, "-3", -3),
        (scalars.as_int, "128", 128),
        (scalars.as_float, "1e-3", 0.001),
        (scalars.as_float, "3.10", 3.1),
        (scalars.as_float, "2", 2.0),
        (scalars.as_float, ".5", 0.5),
        (scalars.as_bool, "true", True),
        (scalars.as_bool, "False", False),
        (scalars.as_duration_s, '"12:00:00"', 43200),
        (scalars.as_duration_s, "30m", 1800),
        (scalars.as_duration_s, "2h", 7200),
        (scalars.as_duration_s, '"1-00:00:00"', 86400),
        (scalars.as_bytes, "80gb", 80 * 1024**3),
        (scalars.as_bytes, "1.5GiB", 3 * 1024**3 // 2),
        (scalars.as_any, "3", 3),
        (scalars.as_any, "1e-3", 0.001),
        (scalars.as_any, "true", True),
        (scalars.as_any, '"no"', "no"),
        (scalars.as_any, "fast", "fast"),
    ],
)
def test_text_is_read_by_the_type_wanted(convert: object, text: str, value: object) -> None:
    result = convert(scalar(text))  # type: ignore[operator]
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("convert", "text", "message"),
    [
        (scalars.as_text, "null", "null is no text"),
        (scalars.as_text, "~", "~ is no text"),
        (scalars.as_text, "", "nothing is no text"),
        (scalars.as_text, r'"a\0b"', "NUL"),
        (scalars.as_int, "0100", "octal"),
        (scalars.as_int, "0x10", "no whole number"),
        (scalars.as_int, "1_000", "no whole number"),
        (scalars.as_int, "1:30", "base 60"),
        (scalars.as_int, "4.0", "no whole number"),
        (scalars.as_int, "1e3", "no whole number"),
        (scalars.as_int, "'4'", "write 4 without quotes"),
        (scalars.as_int, "99999999999999999999", "too large"),
        (scalars.as_int, "true", "no whole number"),
        (scalars.as_float, ".inf", "not finite"),
        (scalars.as_float, ".NaN", "not finite"),
        (scalars.as_float, "1e999", "too large"),
        (scalars.as_float, "1:30", "base 60"),
        (scalars.as_float, "010", "octal"),
        (scalars.as_float, "'0.5'", "without quotes"),
        (scalars.as_bool, "yes", "write true"),
        (scalars.as_bool, "off", "write false"),
        (scalars.as_bool, "1", "write true or false"),
        (scalars.as_bool, "'true'", "without quotes"),
        (scalars.as_duration_s, "12:00:00", 'write "12:00:00" in quotes'),
        (scalars.as_duration_s, "3600", "no duration"),
        (scalars.as_duration_s, "0s", "at least 1s"),
        (scalars.as_bytes, "80", "no size"),
        (scalars.as_bytes, "0gb", "at least 1mb"),
        (scalars.as_any, "off", "ambiguous"),
        (scalars.as_any, "0100", "octal"),
        (scalars.as_any, "1:30", "base 60"),
        (scalars.as_any, ".inf", "not finite"),
    ],
)
def test_what_is_ambiguous_or_wrong_is_refused(convert: object, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        convert(scalar(text))  # type: ignore[operator]
