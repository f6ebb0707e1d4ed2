"""init and doctor on the fake PBS and the fake Torque: what they learn there is what the site is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sites.pbs.site import FakePbs
from sites.pbs.site import fake_pbs as running_pbs

from harness.config.cluster_file import load_cluster

ROOT = Path(__file__).parents[2]


def harness(site: FakePbs, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """``harness …`` in ``cwd``, with this site's commands and none of a Slurm's."""
    environment = {**site.environment, "PYTHONPATH": str(ROOT)}
    environment["PATH"] = f"{site.bin}:{Path(sys.executable).parent}:/bin"
    argv = [sys.executable, "-m", "harness", *words]
    return subprocess.run(argv, cwd=cwd, env=environment, text=True, capture_output=True, timeout=240, check=False)


def test_init_describes_a_pbs_site_and_never_overwrites(fake_pbs: FakePbs, tmp_path: Path) -> None:
    first = harness(fake_pbs, tmp_path, "init", "mine", "--scheduler", "pbs")
    assert first.returncode == 0, first.stderr
    cluster = load_cluster("mine", tmp_path)
    assert (cluster.scheduler, cluster.nodes, cluster.queue) == ("pbs", 2, "workq")
    assert (cluster.node.cores, cluster.node.gpus, cluster.node.memory_bytes) == (16, 4, 16 << 30)
    assert cluster.queues["small"].max_walltime_s == 3600
    assert cluster.queues["limitq"].max_queued_jobs == 2
    assert not {"disabledq", "stoppedq"} & set(cluster.queues)
    assert "line " in first.stdout
    path = tmp_path / "configs" / "clusters" / "mine.yml"
    path.write_text(path.read_text() + "# mine\n")
    again = harness(fake_pbs, tmp_path, "init", "mine", "--scheduler", "pbs")
    assert again.returncode == 2
    assert "is there already" in again.stderr
    assert path.read_text().endswith("# mine\n")
    forced = harness(fake_pbs, tmp_path, "init", "mine", "--scheduler", "pbs", "--force", "--json")
    assert not path.read_text().endswith("# mine\n")
    told = json.loads(forced.stdout)
    assert told["name"] == "mine"
    lines = path.read_text().splitlines()
    assert all("# ?" in lines[mark["line"] - 1] for mark in told["marks"])
    assert any("not of sockets" in mark["remark"] for mark in told["marks"])


def test_init_tells_torque_from_pbs(tmp_path: Path) -> None:
    with running_pbs(dialect="torque") as site:
        done = harness(site, tmp_path, "init", "--scheduler", "pbs", "--print")
    assert done.returncode == 0, done.stderr
    assert "scheduler: torque" in done.stdout
    assert "directives: {style: nodes}" in done.stdout
    assert "node: {sockets: 2, cores_per_socket: 8, gpus: 4, memory: 16384mb}" in done.stdout
    assert not (tmp_path / "configs").exists()


def test_a_queue_that_is_not_there_and_a_server_that_is_down(fake_pbs: FakePbs, tmp_path: Path) -> None:
    unknown = harness(fake_pbs, tmp_path, "init", "--scheduler", "pbs", "--queue", "volta", "--print")
    assert unknown.returncode == 2
    assert "volta_gpu" in unknown.stderr
    fake_pbs.set(down=True)
    down = harness(fake_pbs, tmp_path, "init", "--scheduler", "pbs", "--print")
    assert down.returncode == 1
    assert "cannot connect to server" in down.stderr
    assert "Traceback" not in down.stderr


@pytest.mark.parametrize("history", [True, False])
def test_doctor_on_a_login_node_of_pbs(fake_pbs: FakePbs, tmp_path: Path, history: bool) -> None:
    assert harness(fake_pbs, tmp_path, "init", "mine", "--scheduler", "pbs").returncode == 0
    fake_pbs.set(history=history)
    done = harness(fake_pbs, tmp_path, "doctor", "--cluster", "mine", "--only", "scheduler", "--json")
    found: dict[str, Any] = {check["name"]: check for check in json.loads(done.stdout)}
    assert found["server"]["status"] == "ok"
    assert found["nodes"]["facts"] == {"nodes": 2, "fitting": 2}
    assert found["history"]["status"] == ("ok" if history else "note")
    assert done.returncode == 0
    fake_pbs.set(down=True)
    down = harness(fake_pbs, tmp_path, "doctor", "--cluster", "mine", "--only", "scheduler")
    assert down.returncode == 1
    assert "FAIL server" in down.stdout


def test_a_job_looks_from_inside(fake_pbs: FakePbs, tmp_path: Path) -> None:
    assert harness(fake_pbs, tmp_path, "init", "mine", "--scheduler", "pbs").returncode == 0
    words = ["--job-script", "--only", "storage", "--no-speed", "--ranks-per-node", "2", "--cores-per-rank", "4"]
    script = harness(fake_pbs, tmp_path, "doctor", "--cluster", "mine", *words).stdout
    assert "#PBS -l select=1:ncpus=8" in script
    job = fake_pbs.qsub(script)
    fake_pbs.wait(job)
    log = (tmp_path / "harnessdoctor.log").read_text()
    assert "scratch: /tmp" in log
    assert "local to compute nodes" not in log
