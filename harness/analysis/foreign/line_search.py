"""A regular expression in every line of a text, searched for in one go over the whole text.

Calling an expression for each line of a long log costs more than matching does. ``within_line`` gives an expression
that cannot match a line feed, with ``^`` and ``$`` at every line, so that what it finds in a whole text is what the
original finds in the lines alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.analysis.foreign.literals import literal_of

#: an escape, a set of characters, or one character of an expression
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
#: escapes of one character whose meaning does not hang on what follows, and what each becomes
_ESCAPES = {name: f"\\{name}" for name in "bdwStrfv"} | {
    "s": r"[^\S\n]",
    "D": r"[^\d\n]",
    "W": r"[^\w\n]",
    "A": "^",
    "Z": "$",
}
#: flags for a part of an expression, and comments, in which brackets mean nothing
_SPECIAL = re.compile(r"\(\?(?:#|[a-zA-Z-]+[:)])")


class LineSearch:
    """Where lines of a text match an expression; of a line its first match counts."""

    def __init__(self, expression: re.Pattern[str]):
        self._literal = literal_of(expression.pattern)
        self._in_line = expression
        self._in_text = within_line(expression)
        self._only_group = expression.groups == 1

    def may_be_in(self, text: str) -> bool:
        """False where surely no line matches."""
        return text.rfind(self._literal) >= 0

    def each(self, text: str, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, re.Match[str]]]:
        """For each matching line between two line begins where it begins, and its match."""
        return reversed(self._from_the_last(text, begin, len(text) if end is None else end))

    def _from_the_last(self, text: str, begin: int, end: int) -> list[tuple[int, re.Match[str]]]:
        """Python looks for words that are not there three times as fast from the end as from the begin (3.11)."""
        found = []
        while end >= begin and (place := text.rfind(self._literal, begin, end)) >= 0:
            first = text.rfind("\n", begin, place) + 1 or begin
            after = text.find("\n", place, end)
            if (match := self._in_line.search(text[first : end if after < 0 else after])) is not None:
                found.append((first, match))
            end = first - 1
        return found

    def groups(self, text: str, begin: int, end: int) -> Sequence[tuple[str | None, ...]]:
        """The groups of each matching line's match; one that took no part is None or empty."""
        if self._in_text is None:
            return [match.groups() for _, match in self.each(text, begin, end)]
        found = self._in_text.findall(text, begin, end)
        return [(group,) for group in found] if self._only_group else found


def within_line(expression: re.Pattern[str]) -> re.Pattern[str] | None:
    """The expression for a whole text, which takes the rest of the line as well; None where there is no sure one.

    It finds nothing twice in a line, for it never matches nothing, and takes the line to its end.
    """
    text = expression.pattern
    if expression.flags != re.UNICODE or _SPECIAL.search(text) or not literal_of(text):
        return None
    tokens = [_token_within_line(token) for token in _TOKEN.findall(text)]
    if None in tokens:
        return None
    return re.compile(f"(?:{''.join(map(str, tokens))})[^\\n]*", re.MULTILINE)


def _token_within_line(token: str) -> str | None:
    if token[0] == "\\":
        return token if not token[1].isalnum() and token[1] != "\n" else _ESCAPES.get(token[1])
    if token[0] == "[" and re.match(token, "\n"):
        return f"{token[:-1]}\\n]" if token[1] == "^" else None
    return None if token == "\n" else token
