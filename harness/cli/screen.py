"""Lines in few colours, and tables of text, for the verbs that are asked for most often.

rich draws what moves and what was measured. It is fifty modules, though: a seventh of what ``harness plan`` and
``harness status`` cost, and more where home directories lie on a file server.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

#: text and its style: a word of ``SGR``, or empty
Piece = tuple[str, str]
Line = list[Piece]

#: style → parameter of the control sequence Select Graphic Rendition (ECMA-48, 8.3.117)
SGR = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}

#: a pipe or a file has no edge; tables are folded all the same
PIPE_COLUMNS = 200
#: columns of text below which a table's column is not folded
LEAST_COLUMN = 8
_EDGE, _GAP = " ", "   "
#: what moves the cursor or colours what follows: a file's name or a scheduler's words may hold it
_CONTROLS = {code: " " if chr(code) == "\t" else None for code in (*range(0x20), *range(0x7F, 0xA0)) if code != 0x0A}


class Screen:
    """Standard output, standard error or another stream.

    NO_COLOR and FORCE_COLOR are heeded as elsewhere, and so is COLUMNS on a terminal.
    """

    def __init__(self, stream: TextIO | None = None):
        self.stream = stream or sys.stdout
        self.is_terminal = self.stream.isatty()
        self.width = shutil.get_terminal_size().columns if self.is_terminal else PIPE_COLUMNS
        is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM", "dumb") in ("dumb", "unknown")
        self._rule = "─" if (self.stream.encoding or "utf-8").lower().startswith("utf") else "-"
        self._is_coloured = bool(os.environ.get("FORCE_COLOR")) or (self.is_terminal and not is_plain)

    def say(self, text: str, style: str = "") -> None:
        """Text for people; where a terminal ends it is broken between words, not in them."""
        for line in fold(text, self.width, cut=False) if self.is_terminal else [text]:
            self.line((line, style))

    def line(self, *pieces: Piece) -> None:
        """One line, however long."""
        print("".join(self._styled(*piece) for piece in pieces), file=self.stream)

    def table(self, headers: Sequence[str], rows: Sequence[Line], whole: Sequence[str] = ()) -> None:
        """A table between empty lines; see :func:`table_lines`."""
        for line in ([], *table_lines(headers, rows, self.width, whole, self._rule), []):
            self.line(*line)

    def _styled(self, text: str, style: str) -> str:
        text = text.translate(_CONTROLS)
        return f"\x1b[{SGR[style]}m{text}\x1b[0m" if style and self._is_coloured else text


def table_lines(
    headers: Sequence[str], rows: Sequence[Line], width: int, whole: Sequence[str] = (), rule: str = "─"
) -> list[Line]:
    """The lines of a table: headers, a rule, and the rows, each a cell for each header.

    Cells are folded where the table is wider than ``width`` columns, but for those under a header of ``whole``.
    Where too many columns are left for that, lines are longer.
    """
    rows = [[(text.translate(_CONTROLS), style) for text, style in row] for row in rows]
    widths = _widths(headers, rows, width, whole)
    below = _EDGE + rule * (sum(widths) + len(_GAP) * (len(widths) - 1))
    lines: list[Line] = [*_row([(header, "bold") for header in headers], widths), [(below, "")]]
    for row in rows:
        lines += _row(row, widths)
    return lines


def _widths(headers: Sequence[str], rows: Sequence[Line], width: int, whole: Sequence[str]) -> list[int]:
    """What each column needs, the widest ones narrowed until the table fits."""
    widths = [
        max(cells(line) for text in (header, *(row[place][0] for row in rows)) for line in text.split("\n"))
        for place, header in enumerate(headers)
    ]
    room = width - len(_EDGE) - len(_GAP) * (len(headers) - 1)
    while sum(widths) > room:
        narrowed = [n for n, header in enumerate(headers) if header not in whole and widths[n] > LEAST_COLUMN]
        if not narrowed:
            break
        widths[max(narrowed, key=widths.__getitem__)] -= 1
    return widths


def _row(row: Line, widths: Sequence[int]) -> list[Line]:
    """As many lines as the highest cell has."""
    folded = [fold(text, width) for (text, _), width in zip(row, widths, strict=True)]
    lines: list[Line] = []
    for number in range(max(map(len, folded))):
        line, before = list[Piece](), _EDGE
        for (_, style), parts, width in zip(row, folded, widths, strict=True):
            text = parts[number] if number < len(parts) else ""
            line += [(before, ""), (text, style)] if text else []
            before = ("" if text else before) + " " * (width - cells(text)) + _GAP
        lines.append(line)
    return lines


def cells(text: str) -> int:
    """The columns that a terminal gives to a line: two to a wide character, none to a combining one."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def fold(text: str, width: int, cut: bool = True) -> list[str]:
    """Lines of ``width`` columns at most, broken between words and, with ``cut``, in words that are longer."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line, *words = paragraph.split(" ")
        for word in words:
            if cells(line) + 1 + cells(word) <= width:
                line += " " + word
            else:
                lines.append(line)
                line = word
        lines.append(line)
    return [part for line in lines for part in _cut(line, width)] if cut else lines


def _cut(line: str, width: int) -> list[str]:
    parts = [""]
    for char in line if cells(line) > width else ():
        if parts[-1] and cells(parts[-1] + char) > width:
            parts.append("")
        parts[-1] += char
    return parts if parts[0] else [line]
