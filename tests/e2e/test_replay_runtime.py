"""``python -m harness.runtime`` on replay points, as one rank without a launcher."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runtime_support import clean_environment, events, of_kind, run_point, spec_of, step_column, write_point
from sites.processes import wait_for

from harness.files import read_json_lines

REAL = {"clock": "real", "produce_s": 0.01, "consume_s": 0.01}


def prepared(directory: Path, **axes: Any) -> Path:
    return write_point(directory, spec_of(**axes))


def test_a_whole_run_in_order(tmp_path: Path) -> None:
    done = run_point(prepared(tmp_path, workers=1, prefetch=2, steps_warmup=3, steps_timed=7))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    records = events(tmp_path)
    kinds = [record["event"] for record in records]
    assert kinds[0] == "run_start"
    assert kinds[-1] == "run_end"
    order = ["run_start", "affinity", "provenance", "model", "data", "io", "steps", "io", "affinity", "run_end"]
    positions = [kinds.index("run_start")]
    for kind in order[1:]:
        positions.append(kinds.index(kind, positions[-1] + 1))
    [end] = of_kind(records, "run_end")
    assert (end["ok"], end["steps"], end["fresh_images"], end["consumed_images"]) == (True, 10, 320, 320)
    assert step_column(records, "step") == list(range(10))
    assert {record["name"] for record in of_kind(records, "phase")} == {"import", "exchange", "build"}
    [provenance] = of_kind(records, "provenance")
    assert (provenance["device"], provenance["git_commit"]) == ("cpu", None)
    assert provenance["command"][1:] == ["-m", "harness.runtime", str(tmp_path / "point.json")]
    start = records[0]
    assert (start["rank"], start["world"], start["steps_warmup"], start["steps_timed"]) == (0, 1, 3, 7)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.r0.jsonl", "point.json"]


def test_the_virtual_clock_makes_whole_runs_exact(tmp_path: Path) -> None:
    options = {"produce_s": 0.03, "consume_s": 0.01}
    run_point(prepared(tmp_path, workers=2, prefetch=4, steps_warmup=10, steps_timed=40, options=options))
    end = step_column(events(tmp_path), "end_s")
    # two producers of 30 ms: 15 ms a step; 32 images in that
    assert 32 * 40 / (end[49] - end[9]) == pytest.approx(32 / 0.015, rel=1e-9)


def test_the_real_clock_is_sampled_and_confined(tmp_path: Path) -> None:
    spec = spec_of(workers=1, steps_warmup=0, steps_timed=20, options=REAL, cpu_cores=1)
    done = run_point(write_point(tmp_path, spec))
    assert done.returncode == 0, done.stderr
    records = events(tmp_path)
    first, last = of_kind(records, "affinity")
    allowed = sorted(os.sched_getaffinity(0))
    assert first["launcher_binding"] == allowed
    assert first["allowed_cpus"] == last["allowed_cpus"] == last["worker_allowed_cpus"] == allowed[:1]
    assert first["worker_allowed_cpus"] is None
    assert first["allowed_cores"] == 1
    [samples] = tmp_path.glob("samples.*.jsonl")
    sampled = list(read_json_lines(samples))
    assert sampled[-1]["rss_bytes"] > 1 << 20
    # the sampler's time and the steps' are one scale
    assert records[0]["t_s"] <= sampled[-1]["t_s"] <= records[-1]["t_s"] + 2


def test_too_few_cores_are_a_finding(tmp_path: Path) -> None:
    wanted = len(os.sched_getaffinity(0)) + 3
    run_point(prepared(tmp_path, cpu_cores=wanted, steps_timed=1))
    [finding] = of_kind(events(tmp_path), "finding")
    assert finding["code"] == "fewer_cores_than_requested"
    assert finding["evidence"]["requested_cores"] == wanted
    assert f"socket:PE={wanted} --bind-to core" in finding["advice"]


def test_threads_are_set_before_anything_is_imported(tmp_path: Path) -> None:
    run_point(
        prepared(tmp_path, parallel_threads=7, steps_timed=1), environment=clean_environment(OMP_NUM_THREADS="99")
    )
    records = events(tmp_path)
    assert of_kind(records, "provenance")[0]["env"]["OMP_NUM_THREADS"] == "7"
    assert of_kind(records, "affinity")[0]["threads"] == {"requested": 7}


def test_a_failure_leaves_what_was_measured(tmp_path: Path) -> None:
    done = run_point(prepared(tmp_path, steps_timed=20, options={"fail_at_step": 4}))
    assert done.returncode == 1
    assert "RuntimeError: scripted failure at step 4" in done.stderr
    assert "rank 0 of 1" in done.stderr
    records = events(tmp_path)
    assert step_column(records, "step") == [0, 1, 2, 3]
    [error] = of_kind(records, "error")
    assert (error["type"], error["message"]) == ("RuntimeError", "scripted failure at step 4")
    assert "replay.py" in error["traceback"]
    assert records[-1]["event"] == "run_end"
    assert (records[-1]["ok"], records[-1]["steps"]) == (False, 4)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_run_writes_its_steps_and_leaves_no_process(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    options = {"clock": "real", "produce_s": 0.0, "consume_s": 0.02}
    path = prepared(tmp_path, steps_timed=100_000, options=options)
    command = [sys.executable, "-m", "harness.runtime", str(path)]
    with subprocess.Popen(command, env=clean_environment(), stderr=subprocess.PIPE, text=True) as child:
        wait_for(lambda: of_kind(events_so_far(tmp_path), "steps"))
        wait_for(lambda: [path for path in tmp_path.glob("samples.*.jsonl") if path.stat().st_size])
        child.send_signal(number)
        _, stderr = child.communicate(timeout=120)
    assert child.returncode == code
    assert f"told to stop by {number.name}" in stderr
    assert "Traceback" not in stderr
    records = events(tmp_path)
    assert [record["event"] for record in records[-2:]] == ["error", "run_end"]
    assert records[-1]["steps"] == len(step_column(records, "step")) >= 1
    # the sampler ended before the rank did: its file has its last whole line
    [samples] = tmp_path.glob("samples.*.jsonl")
    assert samples.read_text().endswith("}\n")


def events_so_far(directory: Path) -> list[dict[str, Any]]:
    return list(read_json_lines(directory / "events.r0.jsonl"))


def test_a_second_run_of_an_attempt_is_refused(tmp_path: Path) -> None:
    path = prepared(tmp_path, steps_timed=1)
    assert run_point(path).returncode == 0
    before = (tmp_path / "events.r0.jsonl").read_bytes()
    again = run_point(path)
    assert again.returncode == 2
    assert "this attempt has run already; start a new attempt" in again.stderr
    assert (tmp_path / "events.r0.jsonl").read_bytes() == before


HOSTILE = "a b $(touch hit) 'q' \"d\" ü\n;x"


def test_awkward_paths_are_only_paths(tmp_path: Path) -> None:
    directory = tmp_path / HOSTILE
    done = run_point(prepared(directory, steps_timed=1, options={"clock": "real"}))
    assert done.returncode == 0, done.stderr
    assert events(directory)[-1]["ok"] is True
    assert len(list(directory.glob("samples.*.jsonl"))) == 1
    assert not list(tmp_path.rglob("hit"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory; give the point.json of an attempt"),
        ("{", "not JSON"),
        ("[1]", "schema_version is None"),
        ('{"schema_version": 99}', "schema_version is 99, this harness reads 1; render the job again"),
        ('{"schema_version": 1}', "campaign: Field required; render the job again"),
    ],
)
def test_unreadable_points_are_one_message(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "point.json"
    if content is not None:
        path.write_text(content)
    done = run_point(path)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir() if p != path] == []


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"workload": "reply"}, "unknown workload 'reply'; did you mean 'replay'?"),
        ({"pipeline": "skripted"}, "unknown pipeline 'skripted'; did you mean 'scripted'?"),
        ({"comm": "mpi5py"}, "unknown comm 'mpi5py'; did you mean 'mpi4py'?"),
        ({"options": {"produce_s": -1.0}}, "replay option produce_s: -1.0 is no time"),
        ({"dataset": "mnist"}, "data set 'mnist': no directory /nonexistent"),
    ],
)
def test_bad_points_are_one_message_and_on_record(tmp_path: Path, axes: dict[str, Any], message: str) -> None:
    done = run_point(prepared(tmp_path, **axes))
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    if "workload" not in axes:  # then not even the clock is known
        error, end = events(tmp_path)[-2:]
        assert (error["event"], end["event"], end["ok"]) == ("error", "run_end", False)
        assert message in error["message"]


def test_ranks_that_the_launcher_did_not_start_are_missed(tmp_path: Path) -> None:
    done = run_point(prepared(tmp_path, ranks_per_node=2))
    assert done.returncode == 2
    assert "asks for 2 ranks, the launcher started 1; start it with its job.sh, or mpirun -np 2" in done.stderr


def test_help_says_what_it_is() -> None:
    command = [sys.executable, "-m", "harness.runtime"]
    asked = subprocess.run([*command, "--help"], capture_output=True, text=True, env=clean_environment())
    assert (asked.returncode, asked.stdout.split()[:2]) == (0, ["usage:", "python"])
    assert subprocess.run(command, capture_output=True, env=clean_environment()).returncode == 2
