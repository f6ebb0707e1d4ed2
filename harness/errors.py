"""The exception tree. Everything the program raises on purpose derives from :class:`HarnessError`."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class HarnessError(Exception):
    """A failure with a message fit for the user; the command line exits with :attr:`exit_code`."""

    exit_code = 1


class UserError(HarnessError):
    """Bad input or a missing prerequisite: one clear message, exit code 2, no traceback."""

    exit_code = 2


class Problem(NamedTuple):
    """One mistake in a user's file: where it is, what is wrong, what would be right.

    ``line`` counts from 1; 0 means the file as a whole.
    """

    file: str
    line: int
    what: str
    valid: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.what}" + (f"; {self.valid}" if self.valid else "")


class ConfigError(UserError):
    """One or more problems in a configuration file, all reported together."""

    def __init__(self, problems: Iterable[Problem]):
        self.problems = tuple(problems)
        super().__init__("\n".join(str(p) for p in self.problems))


class CatalogError(UserError):
    """A name that the catalog does not know."""


def nearest(word: str, choices: Sequence[str]) -> str:
    """The valid choices as text, the nearest name first asked for: ``did you mean 'x'? valid: …``."""
    import difflib  # here, since few commands meet a wrong name

    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}valid: {', '.join(choices)}"


#: errno → what to do next
_REMEDIES = {
    errno.ENOSPC: "make room there, then give the same command again: what was done is kept",
    errno.EDQUOT: "make room in your quota, then give the same command again: what was done is kept",
    errno.EACCES: "change its permissions, or name another place",
    errno.EPERM: "change its permissions, or name another place",
    errno.EROFS: "name a place that can be written",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EFBIG: "raise the limit of a file's size, ulimit -f, then give the same command again",
    errno.EIO: "the file system has failed; try again later, or name another place",
    errno.ESTALE: "the file system has changed beneath; give the same command again",
    errno.EMFILE: "raise the limit of open files: ulimit -n",
}


def of_the_system(error: OSError, path: object = None) -> str:
    """What the operating system refused, of which file (``path`` where it does not say), and what to do next."""
    what = error.strerror or str(error) or type(error).__name__
    named = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else path
    where = f"{named}: " if named is not None else ""
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{where}{what}" + (f"; {remedy}" if remedy else "")
