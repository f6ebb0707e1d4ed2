"""Limits of the control group that this process runs in, of either version.

A group is bound by the limits of those above it, so the least counts. A container that sees only its own part of the
tree knows its group by a name that leads nowhere there; its group is then the mount point. Formats: cgroups(7), and
Linux, Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst and scheduler/sched-bwc.rst.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/")
#: version 1 writes "no limit" as the largest number of whole pages in a signed 64-bit count of bytes
_NO_LIMIT_BYTES = 1 << 62


def cpu_quota(root: Path = _ROOT) -> float | None:
    """CPUs' worth of time that the group may use; None: no quota."""
    quotas = []
    for group in _groups(root, "cpu"):
        words = _read(group / "cpu.max").split()
        words = words or [_read(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def memory_limit_bytes(root: Path = _ROOT) -> int | None:
    """Memory that the group may hold, its page cache included; None: no limit."""
    texts = [
        _read(group / name) for group in _groups(root, "memory") for name in ("memory.max", "memory.limit_in_bytes")
    ]
    limits = [int(text) for text in map(str.strip, texts) if text.isdigit()]
    return min((limit for limit in limits if limit < _NO_LIMIT_BYTES), default=None)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The directories of this process's group and of those above it that ``controller`` may be limited by."""
    mount = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if number == "0":
            top = mount / "unified" if (mount / "unified").is_dir() else mount
        elif controller in controllers.split(","):
            top = mount / controller if (mount / controller).is_dir() else mount / controllers
        else:
            continue
        yield top
        steps = [step for step in name.split("/") if step]
        if ".." not in steps:
            yield from (top.joinpath(*steps[: depth + 1]) for depth in range(len(steps)))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
