"""Facts of this machine, for clusters whose node says ``auto``: what this process may use, not what is built in."""

from __future__ import annotations

import os
from pathlib import Path

from harness import cgroups


def usable_cpus() -> int:
    """CPUs in this process's affinity mask, less where its control group's quota is smaller (as in containers)."""
    allowed, quota = len(os.sched_getaffinity(0)), cgroups.cpu_quota()
    return allowed if quota is None else max(1, min(allowed, int(quota)))


def memory_bytes() -> int:
    """Physical memory, or the control group's limit where that is smaller."""
    physical, limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), cgroups.memory_limit_bytes()
    return physical if limit is None else min(physical, limit)


def gpus(devices: Path = Path("/dev")) -> int:
    """NVIDIA GPUs whose device files are visible here; no driver library is loaded to count them."""
    return sum(path.name.removeprefix("nvidia").isdigit() for path in devices.glob("nvidia[0-9]*"))
