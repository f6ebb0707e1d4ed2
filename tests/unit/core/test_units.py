from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.units import format_bytes, format_duration, parse_bytes, parse_duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("12:00:00", 43200), ("00:30:00", 1800), ("05:00", 300), ("1-02:03:04", 93784), ("90s", 90), ("30m", 1800)]
    + [("30min", 1800), ("2h", 7200), ("1d", 86400), (" 2 h ", 7200), ("100:00:00", 360000)],
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "30", "abc", "-5", "1:60:00", "1-05:00", "1.5h", "12:00:00:00", "½h", "9" * 400 + "s", "9" * 5000 + ":00:00"],
)
def test_what_is_no_duration_is_refused_with_the_accepted_forms(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        parse_duration_s(text)


@given(st.integers(0, 10**7))
def test_a_formatted_duration_reads_back(seconds: int) -> None:
    assert parse_duration_s(format_duration(seconds)) == seconds


def test_parts_of_a_second_round_up() -> None:
    assert format_duration(59.2) == "00:01:00"


@pytest.mark.parametrize(
    ("text", "count"),
    [("80gb", 80 << 30), ("80GiB", 80 << 30), ("512M", 512 << 20), ("1.5g", 3 << 29), ("7b", 7), ("2tb", 2 << 40)],
)
def test_sizes(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "80", "gb", "-1gb", "1e3mb", "80 gbb", "9" * 400 + "gb"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no size"):
        parse_bytes(text)


def test_sizes_for_people() -> None:
    assert [format_bytes(n) for n in (0, 1023, 1536, 5 << 40, 5 << 50)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 TiB",
        "5120.0 TiB",
    ]
