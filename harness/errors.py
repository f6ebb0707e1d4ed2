"""The exception tree. Everything the program raises on purpose derives from :class:`HarnessError`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class HarnessError(Exception):
    """A failure with a message fit for the user; the command line exits with :attr:`exit_code`."""

    exit_code = 1


class UserError(HarnessError):
    """Bad input or a missing prerequisite: one clear message, exit code 2, no traceback."""

    exit_code = 2


@dataclass(frozen=True)
class Problem:
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
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}valid: {', '.join(choices)}"
