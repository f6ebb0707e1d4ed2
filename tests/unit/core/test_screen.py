"""Lines and tables of the verbs that do without rich."""

from __future__ import annotations

from io import StringIO, TextIOWrapper
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.screen import LEAST_COLUMN, PIPE_COLUMNS, Line, Screen, cells, fold, table_lines

WORDS = st.lists(st.text("abc日é", min_size=1, max_size=30), max_size=12).map(" ".join)
ROWS: list[Line] = [[("failed", "red"), ("cpu_cores=2", ""), ("17", "dim")], [("lost", "red"), ("", ""), ("4", "dim")]]


def texts(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def said(monkeypatch: pytest.MonkeyPatch, columns: int = 80, **environment: str) -> tuple[Screen, Terminal]:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"COLUMNS": str(columns), "TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    return Screen(stream), stream


def test_a_table_has_its_columns_below_each_other() -> None:
    assert texts(table_lines(("state", "run", "job"), ROWS, 80)) == [
        " state    run           job",
        " ──────────────────────────",
        " failed   cpu_cores=2   17",
        " lost                   4",
    ]


def test_the_widest_columns_are_folded_and_what_is_copied_stays_whole() -> None:
    rows: list[Line] = [
        [("failed", ""), ("a=1 b=2 c=3", ""), ("12345678901234.server", ""), ("no such queue here", "")]
    ]
    lines = texts(table_lines(("state", "run", "job", "reason"), rows, 53, whole=("job",)))
    assert lines[2:] == [
        " failed   a=1 b=2    12345678901234.server   no such",
        "          c=3                                queue",
        "                                             here",
    ]


def test_wide_and_combining_characters_take_the_columns_that_a_terminal_gives_them() -> None:
    assert [cells(text) for text in ("plain", "日本", "e\u0301", "–", "")] == [5, 4, 1, 1, 0]
    lines = texts(table_lines(("a", "b"), [[("日本", ""), ("x", "")], [("ab", ""), ("y", "")]], 80))
    assert lines[2:] == [" 日本   x", " ab     y"]


@given(WORDS, st.integers(2, 40))
def test_folding_keeps_every_letter_and_the_width(text: str, width: int) -> None:
    lines = fold(text, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(cells(line) <= width for line in lines)
    assert " ".join(fold(text, width, cut=False)) == text


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=5), st.integers(20, 120))
def test_a_table_fits_unless_its_columns_are_at_their_least(rows: list[tuple[str, ...]], width: int) -> None:
    lines = texts(table_lines(("one", "two", "three"), [[(cell, "") for cell in row] for row in rows], width))
    assert max(map(cells, lines)) <= max(width, 1 + 3 * LEAST_COLUMN + 6)


def test_a_terminal_gets_colours_and_a_file_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, stream = said(monkeypatch)
    screen.line(("1 failed", "red"), ("; evidence", ""))
    assert stream.getvalue() == "\x1b[31m1 failed\x1b[0m; evidence\n"
    plain = StringIO()
    Screen(plain).line(("1 failed", "red"))
    assert plain.getvalue() == "1 failed\n"


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"TERM": "dumb", "FORCE_COLOR": "1"}, True)],
)
def test_what_the_environment_says_of_colours_is_heeded(
    environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, stream = said(monkeypatch, **environment)
    screen.say("note", "yellow")
    assert ("\x1b[" in stream.getvalue()) is coloured


def test_words_are_broken_between_them_on_a_terminal_and_not_at_all_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, stream = said(monkeypatch, columns=20)
    screen.say("data lie under /a/path/longer/than/a/line and stay")
    assert stream.getvalue().splitlines() == ["data lie under", "/a/path/longer/than/a/line", "and stay"]
    plain = StringIO()
    Screen(plain).say("word " * PIPE_COLUMNS)
    assert plain.getvalue().count("\n") == 1


def test_control_characters_of_a_name_reach_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, stream = said(monkeypatch)
    screen.line(("a\x1b[2J\rb\x9b1m\tc", ""))
    screen.table(("x", "y"), [[("\x1b]0;t\x07n", ""), ("z", "")]])
    assert stream.getvalue().splitlines()[0] == "a[2Jb1m c"
    assert " ]0;tn   z" in stream.getvalue().splitlines()


def test_where_the_encoding_has_no_rule_there_is_a_dash(tmp_path: Path) -> None:
    with TextIOWrapper((tmp_path / "said").open("wb"), encoding="ascii") as stream:
        Screen(stream).table(("x",), [[("y", "")]])
    assert (tmp_path / "said").read_text().splitlines() == ["", " x", " -", " y", ""]
