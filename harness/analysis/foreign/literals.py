"""What a regular expression's match must contain, so that a log without it need not be searched for it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

# the parser of the re module, which had another name before Python 3.11
_parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")


_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


@cache
def literal_of(expression: str) -> str:
    """The longest run of characters that every match holds; empty where none is sure."""
    tree = _parser.parse(expression)
    if tree.state.flags & (_parser.SRE_FLAG_IGNORECASE | _parser.SRE_FLAG_LOCALE):
        return ""
    return max(_runs(tree), key=len, default="")


def _runs(tree: Iterable[tuple[Any, Any]]) -> list[str]:
    """Runs of literal characters outside of branches and of what may be missing."""
    runs = [""]
    for operation, value in tree:
        name = str(operation)
        if name == "LITERAL":
            runs[-1] += chr(value)
            continue
        if (
            name == "SUBPATTERN"
            and not value[1]
            or name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
            and value[0] > 0
        ):
            runs += _runs(value[-1])
        runs.append("")
    return runs
