"""Replay points under mpirun: ranks, shares of CPUs, failures of one of two."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from runtime_support import clean_environment, events, of_kind, run_point, spec_of, step_column, write_point

from harness.files import read_json_lines

pytestmark = pytest.mark.mpi
PATIENCE_S = 120.0
#: mpirun sends KILL a quarter of a second after TERM, whatever the ranks are about: a busy machine may need some tries
TRIES = 5


def two_ranks(directory: Path, **axes: Any) -> Path:
    return write_point(directory, spec_of(ranks_per_node=2, cpu_cores=2, **axes))


def test_two_ranks_meet_measure_and_agree(tmp_path: Path) -> None:
    options = {"produce_s": 0.0, "consume_s": 0.01, "lag_s": 0.005}
    done = run_point(two_ranks(tmp_path, steps_warmup=1, steps_timed=4, options=options), ranks=2)
    assert done.returncode == 0, done.stderr
    both = [events(tmp_path, rank) for rank in (0, 1)]
    for rank, records in enumerate(both):
        start = records[0]
        assert (start["rank"], start["world"], start["local_rank"], start["local_world"]) == (rank, 2, rank, 2)
        [check] = of_kind(records, "check")
        assert (check["name"], check["ok"], check["value"]) == ("ranks_identical", True, "replay")
        assert records[-1]["ok"] is True
        assert "Open MPI" in of_kind(records, "provenance")[0]["versions"]["mpi"]
    assert step_column(both[0], "end_s")[-1] == 0.05
    assert step_column(both[1], "end_s")[-1] == 0.075  # the last rank lags
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.r0.jsonl", "events.r1.jsonl", "point.json"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_unbound_ranks_split_the_cpus_and_share_one_sampler(tmp_path: Path) -> None:
    options = {"clock": "real", "produce_s": 0.0, "consume_s": 0.01}
    done = run_point(two_ranks(tmp_path, steps_timed=5, options=options), ranks=2)
    assert done.returncode == 0, done.stderr
    shares = [set(of_kind(events(tmp_path, rank), "affinity")[0]["allowed_cpus"]) for rank in (0, 1)]
    assert [len(share) for share in shares] == [1, 1]
    assert not shares[0] & shares[1]
    [samples] = tmp_path.glob("samples.*.jsonl")
    assert len(list(read_json_lines(samples))) >= 1
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".meet")]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_a_launcher_that_bound_exactly_is_left_alone(tmp_path: Path) -> None:
    path = two_ranks(tmp_path, steps_timed=1)
    command = ["mpirun", "-np", "2", "--map-by", "socket:PE=1", "--bind-to", "core"]
    command += [sys.executable, "-m", "harness.runtime", str(path)]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        [first, *_] = of_kind(events(tmp_path, rank), "affinity")
        assert len(first["launcher_binding"]) == 1
        assert first["allowed_cpus"] == first["launcher_binding"]
        assert of_kind(events(tmp_path, rank), "finding") == []


def test_one_ranks_failure_ends_the_other_with_its_evidence(tmp_path: Path) -> None:
    options = {"clock": "real", "produce_s": 0.0, "consume_s": 0.02, "fail_at_step": 3}
    for directory in tries(tmp_path):
        done = run_point(two_ranks(directory, steps_timed=10_000, options=options), ranks=2)
        assert done.returncode == 1
        if last_event(directory, 0) == "run_end":
            break
    failed, ended = events(directory, 1), events(directory, 0)
    assert of_kind(failed, "error")[0]["message"] == "scripted failure at step 3"
    assert of_kind(ended, "error")[0]["message"] == "told to stop by SIGTERM"
    for records in (failed, ended):
        assert (records[-1]["event"], records[-1]["ok"]) == ("run_end", False)
        assert records[-1]["steps"] == len(step_column(records, "step"))


def test_a_killed_rank_ends_the_other_without_hanging(tmp_path: Path) -> None:
    for directory in tries(tmp_path):
        with stepping_ranks(directory) as launcher:
            os.kill(events_so_far(directory, 1)[0]["pid"], signal.SIGKILL)
            assert launcher.wait(timeout=PATIENCE_S) != 0
        assert "run_end" not in [record["event"] for record in events_so_far(directory, 1)]
        if last_event(directory, 0) == "run_end":
            break
    assert last_event(directory, 0) == "run_end"


def test_a_stopped_launcher_leaves_every_ranks_evidence(tmp_path: Path) -> None:
    """What happens at the end of the walltime: mpirun tells the ranks, and kills them soon."""
    for directory in tries(tmp_path):
        with stepping_ranks(directory) as launcher:
            launcher.send_signal(signal.SIGTERM)
            assert launcher.wait(timeout=PATIENCE_S) != 0
        if [last_event(directory, rank) for rank in (0, 1)] == ["run_end"] * 2:
            break
    for rank in (0, 1):
        records = events(directory, rank)
        assert of_kind(records, "error")[0]["message"] == "told to stop by SIGTERM"
        assert (records[-1]["event"], records[-1]["ok"]) == ("run_end", False)
        assert records[-1]["steps"] == len(step_column(records, "step")) >= 1


def tries(root: Path) -> Iterator[Path]:
    return (root / str(number) for number in range(TRIES))


def last_event(directory: Path, rank: int) -> str:
    return str(events_so_far(directory, rank)[-1]["event"])


@contextmanager
def stepping_ranks(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """mpirun with two ranks that have both written steps and would go on for half an hour."""
    options = {"clock": "real", "produce_s": 0.0, "consume_s": 0.02}
    path = two_ranks(directory, steps_timed=100_000, options=options)
    command = ["mpirun", "-np", "2", "--map-by", "socket", "--bind-to", "none"]
    command += [sys.executable, "-m", "harness.runtime", str(path)]
    with subprocess.Popen(command, env=clean_environment(), stderr=subprocess.DEVNULL) as launcher:
        try:
            until = time.monotonic() + PATIENCE_S
            while not all(of_kind(events_so_far(directory, rank), "steps") for rank in (0, 1)):
                assert launcher.poll() is None and time.monotonic() < until
                time.sleep(0.02)
            yield launcher
        finally:
            launcher.kill()


def events_so_far(directory: Path, rank: int) -> list[dict[str, Any]]:
    return list(read_json_lines(directory / f"events.r{rank}.jsonl"))


def test_ranks_without_mpi4py_say_so_and_end(tmp_path: Path) -> None:
    """A broken mpi4py stands before the real one on the path."""
    (tmp_path / "broken" / "mpi4py").mkdir(parents=True)
    (tmp_path / "broken" / "mpi4py" / "__init__.py").write_text("raise ImportError('cannot load libmpi.so.40')")
    environment = clean_environment()
    environment["PYTHONPATH"] = f"{tmp_path / 'broken'}:{environment['PYTHONPATH']}"
    path = two_ranks(tmp_path / "run", steps_timed=3)
    done = run_point(path, ranks=2, environment=environment)
    assert done.returncode == 2
    assert "2 ranks need mpi4py to exchange gradients, and it does not load: cannot load libmpi.so.40" in done.stderr
    assert "Traceback" not in done.stderr
    alone = write_point(tmp_path / "none", spec_of(ranks_per_node=2, cpu_cores=2, comm="none", steps_timed=3))
    independent = run_point(alone, ranks=2, environment=environment)
    assert independent.returncode == 0, independent.stderr
    assert of_kind(events(tmp_path / "none", 1), "check") == []


def test_another_mpis_launcher_is_recognised(tmp_path: Path) -> None:
    """mpi4py that does not find its launcher starts a world of its own, of one rank."""
    claimed = {"RANK": "0", "SIZE": "2", "LOCAL_RANK": "0", "LOCAL_SIZE": "1"}
    environment = clean_environment(**{f"OMPI_COMM_WORLD_{name}": value for name, value in claimed.items()})
    done = run_point(two_ranks(tmp_path, steps_timed=1), environment=environment)
    assert done.returncode == 2
    assert "the launcher says rank 0 of 2, mpi4py's MPI says rank 0 of 1" in done.stderr
    assert "mpirun belongs to another MPI" in done.stderr
