"""Disk quotas: what ``lfs quota`` (Lustre) and ``quota`` (NFS, ext4, XFS) answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

_KIB = 1024
_NUMBER = re.compile(r"\[?(\d+)\]?\*?")


@dataclass(frozen=True)
class Quota:
    """Use and limits of one user, group or project on one file system; a limit of None means none."""

    subject: str
    file_system: str
    used_bytes: int
    limit_bytes: int | None
    files: int
    files_limit: int | None

    @property
    def full_share(self) -> float:
        """The larger of the used shares of bytes and of files; 0 without limits."""
        shares = [self.used_bytes / self.limit_bytes if self.limit_bytes else 0.0]
        shares.append(self.files / self.files_limit if self.files_limit else 0.0)
        return max(shares)


def parse_lustre(text: str) -> list[Quota]:
    """``lfs quota -u USER PATH``: a heading ``Disk quotas for usr …``, then a line for the file system.

    Columns (lfs-quota(1)): file system, kbytes, quota, limit, grace, files, quota, limit, grace. A long path stands
    on a line of its own; a number past its quota has a ``*``, one that is not exact stands in brackets; ``0`` is no
    limit. The soft quota counts as the limit where there is one: past it writing ends when the grace period does.
    """
    found = []
    parts = re.split(r"^Disk quotas for (?=\S)", text, flags=re.M)[1:]
    for part in parts:
        heading, _, rest = part.partition("\n")
        subject = heading.partition(" (")[0].rstrip(":")
        rows = re.sub(r"^(\s*/\S*)\n(?=\s+\[?\d)", r"\1 ", rest, flags=re.M)
        for line in rows.splitlines():
            words = line.split()
            if len(words) >= 9 and words[0].startswith("/"):
                found += _row(subject, words[0], words[1:])
    return found


def parse_quota(text: str) -> list[Quota]:
    """``quota -p -w``: lines of file system, blocks, quota, limit, grace, files, quota, limit, grace.

    quota(1) of the Linux quota tools; ``-p`` writes 0 for a grace period that does not run, ``-w`` one line each.
    """
    found, subject = [], ""
    for line in text.splitlines():
        if heading := re.match(r"Disk quotas for (.*?)(?: \([ug]id \d+\))?:", line):
            subject = heading[1]
        words = line.split()
        if len(words) >= 9 and _NUMBER.fullmatch(words[1]):
            found += _row(subject, words[0], words[1:])
    return found


def _row(subject: str, file_system: str, words: list[str]) -> list[Quota]:
    """blocks in KiB, soft, hard, grace, files, soft, hard."""
    numbers = [_NUMBER.fullmatch(words[index]) for index in (0, 1, 2, 4, 5, 6)]
    if not all(numbers):
        return []
    blocks, soft, hard, files, files_soft, files_hard = (int(number[1]) for number in numbers if number)
    limit = (soft or hard) * _KIB or None
    return [Quota(subject, file_system, blocks * _KIB, limit, files, (files_soft or files_hard) or None)]
