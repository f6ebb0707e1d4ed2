"""What becomes of images that cannot be read or decoded: named, counted, and skipped or the end of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from harness.errors import UserError

#: so many are named one by one
NAMED = 20
ADVICE = "verify the data set (harness data verify), or leave such images out for good (harness data convert)"


class Lost(NamedTuple):
    """An image that could not be had, and why."""

    file: str
    reason: str


class Losses:
    """The images that one rank did without. ``skip`` False: the first of them ends the run."""

    def __init__(self, skip: bool, note: Callable[..., None]):
        self._skip = skip
        self._note = note
        self._count = 0
        self._files: set[str] = set()

    def add(self, lost: Iterable[Lost]) -> None:
        """A finding for each image when it is first lost, the first :data:`NAMED` of them.

        Raises:
            UserError: images may not be skipped.
        """
        for file, reason in lost:
            if not self._skip:
                raise UserError(f"{file}: {reason}; to leave such images out, set options: corrupt: skip")
            self._count += 1
            if file not in self._files and len(self._files) < NAMED:
                evidence = {"file": file, "reason": reason}
                self._note("finding", code="corrupt_image", evidence=evidence, advice=ADVICE)
            self._files.add(file)

    def summarise(self) -> None:
        """How many there were, each counted as often as it was met; does nothing when asked again."""
        if self._count:
            evidence = {"skipped": self._count, "files": len(self._files)}
            self._note("finding", code="corrupt_images", evidence=evidence, advice=ADVICE)
        self._count = 0
