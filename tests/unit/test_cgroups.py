"""Limits of a control group, from files as Linux has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cgroups import cpu_quota, memory_limit_bytes

NO_LIMIT = "9223372036854771712"


def machine(root: Path, own: str, files: dict[str, str]) -> Path:
    """A root directory: what /proc/self/cgroup says, and files below /sys/fs/cgroup."""
    written = {f"sys/fs/cgroup/{name}": text for name, text in files.items()} | {"proc/self/cgroup": own}
    for name, text in written.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


def test_a_slurm_step_is_bound_by_its_jobs_limit(tmp_path: Path) -> None:
    """Version 2, no namespace: the step itself has none."""
    job = "system.slice/slurmstepd.scope/job_7"
    limits = {
        f"{job}/memory.max": "53687091200",
        f"{job}/step_0/memory.max": "max",
        f"{job}/step_0/cpu.max": "max 100000",
    }
    root = machine(tmp_path, f"0::/{job}/step_0/user/task_0", limits)
    assert (cpu_quota(root), memory_limit_bytes(root)) == (None, 50 << 30)


def test_the_least_limit_on_the_way_counts(tmp_path: Path) -> None:
    files = {"cpu.max": "800000 100000", "a/cpu.max": "150000 100000", "a/b/cpu.max": "400000 100000"}
    assert cpu_quota(machine(tmp_path, "0::/a/b", files)) == 1.5


@pytest.mark.parametrize("own", ["0::/", "0::/../../outside"])
def test_a_container_has_its_group_at_the_mount_point(tmp_path: Path, own: str) -> None:
    root = machine(tmp_path, own, {"cpu.max": "200000 100000", "memory.max": "1048576"})
    assert (cpu_quota(root), memory_limit_bytes(root)) == (2.0, 1 << 20)


def test_version_1(tmp_path: Path) -> None:
    own = "9:name=systemd:/\n4:memory:/slurm/uid_1/job_7\n1:cpu,cpuacct:/docker/3f\n0::/"
    files = {
        "memory/memory.limit_in_bytes": NO_LIMIT,
        "memory/slurm/uid_1/job_7/memory.limit_in_bytes": "1073741824",
        # inside a container: its group is the mount point, whatever its name is outside
        "cpu,cpuacct/cpu.cfs_quota_us": "250000",
        "cpu,cpuacct/cpu.cfs_period_us": "100000",
    }
    root = machine(tmp_path, own, files)
    assert (cpu_quota(root), memory_limit_bytes(root)) == (2.5, 1 << 30)


def test_no_limit_is_none(tmp_path: Path) -> None:
    assert (cpu_quota(tmp_path), memory_limit_bytes(tmp_path)) == (None, None)
    files = {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000", "memory/memory.limit_in_bytes": NO_LIMIT}
    root = machine(tmp_path, "2:memory:/\n1:cpu:/", files)
    assert (cpu_quota(root), memory_limit_bytes(root)) == (None, None)
