"""Searching a whole text finds what searching each of its lines finds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.foreign import patterns
from harness.analysis.foreign.line_search import LineSearch, within_line

#: what may go wrong at the end of a line: spaces and sets that hold a line feed, anchors, looking around, taking all
AT_ONCE = [
    r"a\s*(\d)",
    r"a[^b]*(\d)",
    r"^\s*(a)b",
    r"(\d)\s*a$",
    r"\A(\W*)a",
    r"a(\D*)\Z",
    r"(?<!\d)(\d)a",
    r"a(\d)?(?!\s)",
    r"(\d+)a(?=[^b])",
    r"\b(\d)a\b",
    r"a(.*?)b",
    r"[]a](\d)ab?",
    r"(?P<n>\d)a(?P=n)",
    r"(\d)a|b(\d)",
]
LINE_BY_LINE = [
    r"(?i)A(\d)",
    r"a[\s\d](\d)",
    r"a\B(\d)",
    r"(\d*)",
    r"a(?s:.)(\d)",
    "a(\\d)|b\n",
    r"(\d)a\1",
    r"a\x0a?(\d)",
    r"a(?#[)(\d)",
]
TEXTS = st.text(st.sampled_from("ab1 2\n\n\t\r\x0b\x85b,"), max_size=40)


def line_by_line(expression: str, text: str) -> list[tuple[int, tuple[str, ...]]]:
    found, place = [], 0
    for line in text.split("\n"):
        if match := re.search(expression, line):
            found.append((place, match.groups("")))
        place += len(line) + 1
    return found


@settings(deadline=None, max_examples=300)
@pytest.mark.parametrize("expression", [*AT_ONCE, *LINE_BY_LINE])
@given(text=TEXTS)
def test_each_line_is_searched_for_itself(expression: str, text: str) -> None:
    search, found = LineSearch(re.compile(expression)), line_by_line(expression, text)
    assert [(place, match.groups("")) for place, match in search.each(text)] == found
    taken = search.groups(text, 0, len(text))
    assert [tuple(group or "" for group in groups) for groups in taken] == [groups for _, groups in found]
    if found:
        assert search.may_be_in(text)


@pytest.mark.parametrize("expression", LINE_BY_LINE)
def test_what_cannot_be_told_from_the_whole_text_is_not_asked_of_it(expression: str) -> None:
    assert within_line(re.compile(expression)) is None


def test_between_two_lines_the_others_do_not_count() -> None:
    text = "a1\na2\n\na3\na4"
    for expression in (r"a(\d)", r"(?i)a(\d)"):
        search = LineSearch(re.compile(expression))
        assert list(search.groups(text, 3, 10)) == [("2",), ("3",)]
        assert [(place, match[1]) for place, match in search.each(text, 3, 10)] == [(3, "2"), (7, "3")]


@pytest.mark.parametrize("name", patterns.shipped())
def test_step_lines_of_shipped_patterns_are_found_at_once(name: str) -> None:
    assert all(within_line(expression) for expression in patterns.load(name).expressions["steps"])
