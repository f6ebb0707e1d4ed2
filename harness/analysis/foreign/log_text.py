"""A log's text as lines that a program wrote, without what terminals and launchers added. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate, chain

#: Terminal colours and cursor movements.
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
#: How a progress bar goes back to write over its line.
_BACK = re.compile(r"[\r\x08]+")
#: How mpirun and horovodrun mark whose line it is: ``[1,0]<stdout>:``, ``[prterun-n1-7@1,0]<stdout>: ``.
_RANK = re.compile(r"^\[(?:[^\]\n]*@)?[\d,]+\]<std(?:out|err)>:[^\S\n]?", re.MULTILINE)


class LogText:
    """``text`` has a line for each that was written; of a line that a progress bar wrote over, one for each version."""

    def __init__(self, raw: str):
        text = _RANK.sub("", raw) if "<" in raw and "]<std" in raw else raw
        self._last_versions: list[int] | None = None
        if any(sign in text for sign in "\x1b\r\x08"):
            lines = [_BACK.split(line) for line in _TERMINAL.sub("", text).split("\n")]
            self._last_versions = list(accumulate(map(len, lines)))
            text = "\n".join(chain.from_iterable(lines))
        self.text = text
        self._place = self._before = 0

    def number(self, place: int) -> int:
        """The number in the log, from 1, of the line that begins at ``place``; to be asked for in rising order."""
        self._before += self.text.count("\n", self._place, place)
        self._place = place
        return (self._before if self._last_versions is None else bisect_right(self._last_versions, self._before)) + 1

    def after(self, place: int) -> int:
        """Where the line after the one that begins at ``place`` begins; the text's end after the last one."""
        return self.text.find("\n", place) + 1 or len(self.text)
