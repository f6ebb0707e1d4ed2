"""Paths of a cluster's file as a job's shell will see them."""

from __future__ import annotations

import os
import re

_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})")


def expanded(path: str) -> str | None:
    """``path`` with ``$NAME``, ``${NAME}`` and a leading ``~`` filled in from here; None where one is not set here."""
    filled = os.path.expandvars(path)
    return None if _VARIABLE.search(filled) else os.path.expanduser(filled)  # noqa: PTH111  # as text, not as a path
