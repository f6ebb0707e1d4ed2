"""What is left of a group whose group.json cannot be read: its map or script, and the links of its attempts to it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.files import read_file
from harness.layout import AttemptLayout, CampaignLayout, GroupLayout
from harness.model.group import Group
from harness.model.ledger import AttemptKey

_NAME = re.compile(r"g[1-9]\d{0,8}")
_BODY = re.compile(r"(?:.*/)?groups/(g[1-9]\d{0,8})/body\d+\.sh")
_ATTEMPT = re.compile(r".*/(\w+)/r(\d{1,9})a(\d{1,9})", re.DOTALL)
#: a pack's script runs its attempts by such lines, their paths quoted or not
_TURN = re.compile(r"^attempt \d+ .*/(\w+)/r(\d{1,9})a(\d{1,9})'?$", re.MULTILINE)


def is_group_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def group_of(paths: AttemptLayout) -> str | None:
    """The name of the group that an attempt was made for, as its job.sh tells; empty for one with a job of its own.

    None where it does not tell: it is not there, or is something else.
    """
    try:
        target = os.readlink(paths.script)  # noqa: PTH115  the group's directory need not be there any more
    except OSError:
        return "" if paths.script.is_file() else None
    found = _BODY.fullmatch(target)
    return found[1] if found else None


def rebuilt(layout: CampaignLayout, name: str, job_name: str) -> Group | None:
    """The group without its group.json; None where what is left does not tell its attempts for certain."""
    paths, number = layout.group(name), int(name[1:])
    try:
        is_array = paths.map.exists()
        keys = _of_map(layout, paths.map) if is_array else _of_script(paths)
    except (OSError, ValueError):
        return None
    if not keys:
        return None
    return Group(kind="array" if is_array else "pack", name=name, number=number, job_name=job_name, attempts=keys)


def _of_map(layout: CampaignLayout, path: Path) -> tuple[AttemptKey, ...]:
    """An array's attempts by index: all or none, for one end that is missing would move the indices behind it.

    Raises:
        OSError, ValueError: it cannot be read, or an entry is no attempt of this campaign.
    """
    entries = read_file(path).decode().split("\0")
    if entries.pop():
        raise ValueError("the last entry is cut")
    keys = []
    for entry in entries:
        found = _ATTEMPT.fullmatch(entry)
        key = AttemptKey(found[1], int(found[2]), int(found[3])) if found else None
        if key is None or str(layout.attempt(*key).root) != entry:
            raise ValueError(f"no attempt of this campaign: {entry!r}")
        keys.append(key)
    if len(set(keys)) < len(keys):
        raise ValueError("an attempt stands there twice")
    return tuple(keys)


def _of_script(paths: GroupLayout) -> tuple[AttemptKey, ...]:
    """A pack's attempts in the order in which its script runs them.

    Raises:
        OSError, ValueError: it cannot be read.
    """
    found = _TURN.findall(read_file(paths.script).decode())
    return tuple(dict.fromkeys(AttemptKey(point, int(repeat), int(attempt)) for point, repeat, attempt in found))
