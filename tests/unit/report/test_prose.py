"""Sentences break between words at the terminal's width; what a user copies is never broken."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from harness.report.prose import print_prose


def printed(words: str | Text, width: int, **places: int) -> list[str]:
    told = io.StringIO()
    print_prose(Console(file=told, width=width), words, **places)
    return told.getvalue().splitlines()


def test_lines_end_at_the_width_and_further_ones_hang() -> None:
    told = "one of the points did not become steady, so nothing rests on it"
    assert printed(told, 30, indent=2) == [
        "  one of the points did not",
        "    become steady, so nothing",
        "    rests on it",
    ]


@pytest.mark.parametrize("whole", ["`harness retry 'a campaign'`", "/scratch/" + "x" * 60, "(`harness plan a`)."])
def test_a_command_and_a_path_stay_whole(whole: str) -> None:
    lines = printed(f"see {whole} then go on", 20)
    assert whole in [line.strip() for line in lines]


def test_a_line_that_fits_exactly_is_one_line() -> None:
    assert printed("x" * 10 + " " + "y" * 9, 20) == ["x" * 10 + " " + "y" * 9]


def test_wide_characters_count_as_two_columns() -> None:
    assert printed("漢字漢字 漢字漢字", 14, hanging=0) == ["漢字漢字", "漢字漢字"]


def test_a_lone_backtick_is_a_letter() -> None:
    assert printed("it`s one of those", 10, hanging=0) == ["it`s one", "of those"]
