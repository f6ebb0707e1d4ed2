"""Facts of this machine, for clusters whose node says ``auto``: what this process may use, not what is built in."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def usable_cpus(cgroup: Path = _CGROUP) -> int:
    """CPUs in this process's affinity mask, less where a cgroup's CPU quota is smaller (as in containers)."""
    allowed = len(os.sched_getaffinity(0))
    words = _read(cgroup / "cpu.max").split()
    if len(words) == 2 and words[0].isdigit() and int(words[1]):
        return max(1, min(allowed, int(words[0]) // int(words[1])))
    return allowed


def memory_bytes(cgroup: Path = _CGROUP) -> int:
    """Physical memory, or the cgroup's limit where that is smaller."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _read(cgroup / "memory.max").strip()
    return min(physical, int(limit)) if limit.isdigit() else physical


def gpus(devices: Path = Path("/dev")) -> int:
    """NVIDIA GPUs whose device files are visible here; no driver library is loaded to count them."""
    return sum(path.name.removeprefix("nvidia").isdigit() for path in devices.glob("nvidia[0-9]*"))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
