"""Whether a campaign was moved after its jobs were written: they name its directory as it was."""

from __future__ import annotations

import os
import re
import shlex

from harness.files import read_file
from harness.layout import AttemptLayout, GroupLayout

_OWN = re.compile(r"^attempt_dir=(.*?)$\n\n# ---- evidence", re.MULTILINE | re.DOTALL)
_PACKED = re.compile(r"^attempt \d+ ('.*?'|\S+)$", re.MULTILINE | re.DOTALL)


def old_place(paths: AttemptLayout) -> str | None:
    """The directory in which an attempt's job looks for it, where that is there no more; None where it is, or where
    nothing tells."""
    try:
        named = _named(paths)
        return named if named and not os.path.lexists(named) else None
    except (OSError, ValueError):
        return None


def _named(paths: AttemptLayout) -> str | None:
    """An attempt of the same job will do, of those in a group: they were written together.

    Raises:
        OSError, ValueError: a script cannot be read, or is none of ours.
    """
    if not paths.script.is_symlink():
        return _word(_OWN.search(read_file(paths.script).decode()))
    group = GroupLayout(paths.script.resolve().parent)
    if group.map.exists():
        return read_file(group.map).decode().partition("\0")[0]
    return _word(_PACKED.search(read_file(group.script).decode()))


def _word(found: re.Match[str] | None) -> str | None:
    return shlex.split(found[1])[0] if found else None
