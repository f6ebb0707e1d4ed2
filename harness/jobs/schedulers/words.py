"""Words of directive lines: what may stand there, and how sizes and paths are spelt."""

from __future__ import annotations

import re

from harness.errors import UserError
from harness.layout import is_plain

_MIB = 1024**2
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_.@+:=/~-]+")
#: where a scheduler's own log goes when its path cannot be written in a directive; the job keeps its own logs, but not
#: what is said before they are there: a claim that cannot be made, an end before the script begins
NO_LOG = "/dev/null"
#: reason of a job that a scheduler ended because its node could not open that log
LOG_NOT_OPENED = "its log could not be opened on the node"


def plain(value: str, what: str) -> str:
    """``value``, if it can stand in a directive line of every scheduler unquoted.

    A comma would start another resource, a space another option, a newline another line.

    Raises:
        UserError: for anything else.
    """
    if not _PLAIN_WORD.fullmatch(value):
        raise UserError(
            f"{what} {value!r} cannot stand in a job script's directives; "
            "use letters, digits and . _ @ + : = / ~ - only (PBS lists are joined by ':', such as home:eagle)"
        )
    return value


def whole_line(line: str) -> str:
    """A directive line of the site's own, as written; line breaks are refused since they would end it."""
    if not line.strip() or any(ord(character) < 32 for character in line):
        raise UserError(f"directives.extra: {line!r} is not one line of text")
    return line.strip()


def log_path(path: str) -> str:
    """``path`` where it is unambiguous in a directive, else :data:`NO_LOG`.

    Schedulers read host names before a colon, expand ``%`` and ``^`` and split at spaces and commas, each by rules
    of its own; a log directory that cannot be found can cost the job's output or the job.
    """
    return path if is_plain(path) else NO_LOG


def mebibytes(count: int) -> int:
    """Bytes rounded up to whole MiB. Fractions (``1.5gb``) and ``GiB`` are refused by PBS, so whole MiB it is."""
    return -(-count // _MIB)
