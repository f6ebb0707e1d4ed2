"""Memory held by the kernel, as at most sites: a private Slurm whose steps live in cgroups (version 1) below our own.

Nothing outside our own cgroup is touched: the daemons of the nodes see it as the root of the hierarchy.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from sites import processes


def lacking() -> str:
    """Why steps cannot be held in cgroups here; empty where they can."""
    own = _own()
    if own is None:
        return "no memory controller of cgroup version 1 (22.05 asks systemd for version 2)"
    if os.getuid() != 0 or not os.access(own, os.W_OK):
        return f"{own} cannot be written to"
    return ""


def _own() -> Path | None:
    """The directory of our own cgroup in the memory hierarchy."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    roots = [words[1] for words in mounts if words[2] == "cgroup" and "memory" in words[3].split(",")]
    groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    paths = [path for _, controllers, path in groups if controllers == "memory"]
    own = Path(roots[0] + paths[0]) if roots and paths else None
    return own if own is not None and own.is_dir() else None


def settings(base: Path) -> str:
    """What slurm.conf says of it; cgroup.conf is written beside it."""
    (base / "cgroup.conf").write_text(f"""\
CgroupPlugin=cgroup/v1
CgroupMountpoint={base}/cgroup
CgroupAutomount=no
ConstrainRAMSpace=yes
MinRAMSpace=8
""")
    return "TaskPlugin=task/cgroup\n"


def namespace(base: Path) -> list[str]:
    """The words before a daemon's own: a cgroup for this site, which the daemon then sees as the root."""
    own = _own()
    assert own is not None, lacking()
    group, seen = own / base.name, base / "cgroup" / "memory"
    group.mkdir(exist_ok=True)
    seen.mkdir(parents=True, exist_ok=True)
    enter = 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"'
    mount = 'mount -t cgroup -o memory none "$1"; shift; exec "$@"'
    inner = ["unshare", "--cgroup", "--mount", "sh", "-ec", mount, "sh", str(seen)]
    return ["sh", "-ec", enter, "sh", str(group), *inner]


def remove(base: Path) -> None:
    """Remove what a site left of its cgroups; its processes have ended, or are about to."""
    own = _own()
    if own is None:
        return
    group = own / base.name

    def is_gone() -> bool:
        for path, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                Path(path).rmdir()
        return not group.exists()

    assert processes.wait_until(is_gone, 60), f"{group} is still in use"
