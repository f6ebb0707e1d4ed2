"""The local engine with real processes: confinement, walltime, cancellation, and what outlives what."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sites.processes import wait_for

from harness.config import this_machine
from harness.errors import UserError
from harness.jobs import engine, keeper
from harness.jobs.local_cpus import by_distance
from harness.jobs.local_registry import KEEP_ENDED_S, STATE_VARIABLE, JobDirectory, Registry, State
from harness.jobs.process import identify, is_alive, members

CPUS = sorted(os.sched_getaffinity(0))
two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    registry = Registry()
    yield registry
    for job in registry.all():
        engine.cancel(registry, job.id)
        state = job.state()
        if state is not None:
            wait_for(lambda job=job: ended(job))


def ended(job: JobDirectory) -> State | None:
    state = job.state()
    return state if state is not None and state.ended_unix_s is not None else None


def queue(registry: Registry, folder: Path, body: str, **request: Any) -> JobDirectory:
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "job.sh"
    options = {"cores": 1, "walltime_s": 60, "output": f'"{folder}/log"', **request}
    lines = [f"#LOCAL {key}={value}" for key, value in options.items()]
    script.write_text("\n".join(["#!/bin/bash", *lines, body, ""]))
    job = registry.find(engine.submit(registry, str(script), "hname"))
    assert job is not None
    return job


def test_a_job_is_on_record_as_running_before_its_script_starts(registry: Registry, tmp_path: Path) -> None:
    body = f"cat {registry.jobs}/$HARNESS_JOB_ID/state.json"
    for number in range(3):
        job = queue(registry, tmp_path / str(number), body)
        assert wait_for(lambda job=job: ended(job)).exit_status == 0
        assert json.loads((tmp_path / str(number) / "log").read_text())["state"] == "RUNNING"


def described(registry: Registry, job: JobDirectory) -> dict[str, Any]:
    record = engine.describe(registry, job.id)
    assert record is not None
    return record


@two_cpus
@pytest.mark.parametrize("cores", [1, 2])
def test_a_job_has_exactly_its_cores(cores: int, registry: Registry, tmp_path: Path) -> None:
    body = "python3 -c 'import os; print(sorted(os.sched_getaffinity(0)))'; echo $HARNESS_JOB_ID"
    job = queue(registry, tmp_path / "a b", body, cores=cores)
    state = wait_for(lambda: ended(job))
    assert (state.state, state.exit_status, state.cause) == ("SUCCEEDED", 0, "exit")
    assert (tmp_path / "a b/log").read_text() == f"{list(state.cpus)}\n{job.id}\n"
    assert len(state.cpus) == cores and set(state.cpus) <= set(CPUS)


@two_cpus
def test_jobs_side_by_side_never_share_a_core(registry: Registry, tmp_path: Path) -> None:
    jobs = [queue(registry, tmp_path / str(n), "sleep 0.5") for n in range(4)]
    states = [wait_for(lambda job=job: ended(job)) for job in jobs]
    for n, one in enumerate(states):
        for other in states[n + 1 :]:
            if one.started_unix_s < other.ended_unix_s and other.started_unix_s < one.ended_unix_s:
                assert not set(one.cpus) & set(other.cpus)


@two_cpus
def test_an_exclusive_job_is_alone_and_is_not_overtaken(registry: Registry, tmp_path: Path) -> None:
    first = queue(registry, tmp_path / "1", "sleep 0.6")
    alone = queue(registry, tmp_path / "2", "sleep 0.3", exclusive="true")
    late = queue(registry, tmp_path / "3", "true")
    one, two, three = (wait_for(lambda job=job: ended(job)) for job in (first, alone, late))
    assert one.ended_unix_s <= two.started_unix_s and two.ended_unix_s <= three.started_unix_s
    assert one.started_unix_s < two.started_unix_s < three.started_unix_s


def test_memory_is_not_lent_twice(registry: Registry, tmp_path: Path) -> None:
    total = this_machine.memory_bytes()
    big = queue(registry, tmp_path / "1", "sleep 0.5", memory_bytes=int(total * 0.7))
    other = queue(registry, tmp_path / "2", "true", memory_bytes=int(total * 0.7))
    one, two = wait_for(lambda: ended(big)), wait_for(lambda: ended(other))
    assert two.started_unix_s >= one.ended_unix_s


@pytest.mark.parametrize(
    ("request_", "message"),
    [({"cores": 4096}, "4096 cores are asked for"), ({"memory_bytes": 1 << 60}, "of memory are asked for")],
)
def test_what_can_never_run_is_refused(
    request_: dict[str, int], message: str, registry: Registry, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        queue(registry, tmp_path / "a", "true", **request_)
    assert list(registry.all()) == []


@pytest.mark.parametrize(("body", "status"), [("exit 3", 3), ("kill -9 $$", 137)])
def test_a_failing_script(body: str, status: int, registry: Registry, tmp_path: Path) -> None:
    job = queue(registry, tmp_path / "a", body)
    state = wait_for(lambda: ended(job))
    assert (state.state, state.exit_status) == ("FAILED", status)


#: the walltime leaves it time to set its trap
TRAP = "trap 'echo told; exit 9' TERM; sleep 100 & wait"


def test_the_walltime_is_kept_and_the_script_may_write_its_end(registry: Registry, tmp_path: Path) -> None:
    job = queue(registry, tmp_path / "a", TRAP, walltime_s=5)
    state = wait_for(lambda: ended(job))
    assert (state.state, state.cause, state.exit_status) == ("TIMED_OUT", "walltime", 9)
    assert (tmp_path / "a/log").read_text() == "told\n"
    assert described(registry, job)["reason"] == "stopped at its walltime"


def test_a_running_job_is_cancelled_with_all_it_started(registry: Registry, tmp_path: Path) -> None:
    body = f"setsid sleep 321 & env -i sleep 321 & echo ready; {TRAP}"
    job = queue(registry, tmp_path / "a", body)
    wait_for(lambda: (tmp_path / "a/log").exists() and "ready" in (tmp_path / "a/log").read_text())
    leader = wait_for(lambda: (state := job.state()) and state.leader)
    engine.cancel(registry, job.id)
    assert wait_for(lambda: ended(job)).state == "CANCELLED"
    assert members(leader.pid, f"HARNESS_JOB_ID={job.id}") == []


def test_a_script_that_ignores_term_is_killed(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, for the grace is shortened."""
    monkeypatch.setattr(keeper, "GRACE_S", 0.5)
    body = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    child = subprocess.Popen(["bash", "-c", body], start_new_session=True, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"ready\n"
    keeper._stop(child.pid)
    keeper.end_members("no-such-job", child.pid)
    assert child.wait(timeout=60) == -signal.SIGKILL


def test_a_queued_job_is_cancelled_before_it_starts(registry: Registry, tmp_path: Path) -> None:
    first = queue(registry, tmp_path / "1", "sleep 600", walltime_s=600, exclusive="true")
    waiting = queue(registry, tmp_path / "2", "echo never")
    assert described(registry, waiting)["reason"] == "waiting for free CPUs"
    engine.cancel(registry, waiting.id)
    assert wait_for(lambda: ended(waiting)).state == "CANCELLED"
    assert not (tmp_path / "2/log").exists()
    assert wait_for(lambda: described(registry, first)["state"] == "RUNNING")


def kill_keeper(job: JobDirectory) -> State:
    state: State = wait_for(lambda: (s := job.state()) and s.leader and s)  # RUNNING is said before the script starts
    os.kill(state.keeper.pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(state.keeper))
    return state


def test_a_job_outlives_its_keeper_and_keeps_its_cpus(registry: Registry, tmp_path: Path) -> None:
    job = queue(registry, tmp_path / "1", "sleep 600", walltime_s=600, exclusive="true")
    kill_keeper(job)
    assert described(registry, job)["state"] == "RUNNING"
    waiting = queue(registry, tmp_path / "2", "true")
    time.sleep(0.5)
    assert described(registry, waiting)["state"] == "QUEUED"
    engine.cancel(registry, job.id)
    assert described(registry, job)["state"] == "CANCELLED"
    assert wait_for(lambda: ended(waiting)).state == "SUCCEEDED"


def test_the_walltime_of_a_job_without_keeper_is_kept_by_who_asks(registry: Registry, tmp_path: Path) -> None:
    job = queue(registry, tmp_path / "1", "sleep 600", walltime_s=600)
    kill_keeper(job)
    request = job.request()
    assert request is not None
    job.write_request(replace(request, walltime_s=0))
    assert wait_for(lambda: described(registry, job)["state"] == "TIMED_OUT")


def test_a_keepers_last_word_is_heard_though_it_comes_during_the_look(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job stands as running when it is read, and its keeper is gone when that is looked for."""
    job = queue(registry, tmp_path / "1", "true")
    last = wait_for(lambda: ended(job))

    def speaks_and_goes(_: State) -> bool:
        job.write_state(last)
        return False

    monkeypatch.setattr(engine, "is_supervised", speaks_and_goes)
    running = replace(last, state="RUNNING", ended_unix_s=None, exit_status=None, cause="")
    job.write_state(running)
    assert described(registry, job)["state"] == "SUCCEEDED"
    job.write_state(running)
    engine.cancel(registry, job.id)
    assert described(registry, job)["state"] == "SUCCEEDED"


def test_a_job_that_ended_without_its_keeper_is_unknown(registry: Registry, tmp_path: Path) -> None:
    job = queue(registry, tmp_path / "1", f"until [ -e '{tmp_path}/go' ]; do sleep 0.1; done")
    kill_keeper(job)
    (tmp_path / "go").touch()
    assert wait_for(lambda: described(registry, job)["state"] == "UNKNOWN")


def test_jobs_of_other_hosts_and_forgotten_jobs(registry: Registry, tmp_path: Path) -> None:
    job = queue(registry, tmp_path / "1", "true")
    here = job.id.rpartition("@")[2]
    assert engine.describe(registry, "123@some-other-host") is None
    assert engine.describe(registry, f"123@{here}") == {"id": f"123@{here}", "state": "UNKNOWN"}
    state = wait_for(lambda: ended(job))
    registry.prune(state.ended_unix_s + KEEP_ENDED_S - 1)
    assert registry.find(job.id) is not None
    registry.prune(state.ended_unix_s + KEEP_ENDED_S + 1)
    assert registry.find(job.id) is None


def test_ids_are_in_the_order_of_submission(registry: Registry) -> None:
    ids = [registry.new().id for _ in range(20)]
    assert ids == sorted(ids) == [job.id for job in registry.all()]


def test_a_foreign_registry_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(UserError, match="belongs to someone else"):
        Registry(tmp_path / "link")


def test_cores_come_before_threads_and_sockets_stay_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sockets of two cores of two threads, numbered as Linux does: 0-3 first threads, 4-7 their siblings."""
    for cpu in range(8):
        topology = tmp_path / f"cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{cpu % 2}\n")
        (topology / "core_id").write_text(f"{cpu % 4 // 2}\n")
    monkeypatch.setattr("harness.jobs.local_cpus._TOPOLOGY", tmp_path)
    assert by_distance(range(8)) == [0, 2, 1, 3, 4, 6, 5, 7]
    assert by_distance([8, 9]) == [8, 9]


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen(["true"])
    identity = identify(child.pid)
    wait_for(lambda: identify(child.pid) is None)
    assert identity is None or not is_alive(identity)
    child.wait()
