"""Sentences in a terminal: broken between words at its width, or at 80 columns where there is none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

#: A word, in which a command in backticks counts as one, and the blanks behind it.
_WORD = re.compile(r"(?:`[^`\n]*`|\S)+\s*")


def print_prose(console: Console, words: Text | str, indent: int = 0, hanging: int = 2) -> None:
    """Print ``words`` after ``indent`` blanks, further lines ``hanging`` blanks more to the right.

    A word is never broken, and no command in backticks: what a user copies stays whole, though it be longer than the
    line.
    """
    told = words if isinstance(words, Text) else Text(words)
    margins = " " * indent, " " * (indent + hanging)
    breaks: list[int] = []
    used = indent
    for word in _WORD.finditer(told.plain):
        wide = cell_len(word[0].rstrip())
        if used + wide > console.width and used > len(margins[bool(breaks)]):
            breaks.append(word.start())
            used = len(margins[1])
        used += cell_len(word[0])
    for number, line in enumerate(told.divide(breaks)):
        line.rstrip()
        # the terminal is not to break it again where a word is longer than the line
        console.print(Text(margins[bool(number)]) + line, soft_wrap=True)
