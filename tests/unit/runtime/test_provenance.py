from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.runtime import provenance

CPUINFO = """processor\t: 0
model name\t: Example 7543P 32-Core Processor
physical id\t: 0

processor\t: 1
model name\t: Example 7543P 32-Core Processor
physical id\t: 1
"""


def test_the_host_is_read_from_its_files(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": CPUINFO,
        "proc/meminfo": "MemTotal:       1024 kB\nMemFree: 5 kB\n",
        "etc/os-release": 'NAME="X"\nPRETTY_NAME="Example Linux 15"\n',
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    facts = provenance.host_facts(tmp_path)
    assert facts["cpu_model"] == "Example 7543P 32-Core Processor"
    assert (facts["cpus"], facts["sockets"], facts["memory_bytes"]) == (2, 2, 1048576)
    assert (facts["os"], facts["driver"], facts["kernel"]) == ("Example Linux 15", "550.54.15", platform.release())


def test_a_jobs_memory_is_what_its_control_group_may_hold(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": "MemTotal:       395000000 kB\n",
        "proc/self/cgroup": "0::/job_7\n",
        "sys/fs/cgroup/job_7/memory.max": "53687091200\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert provenance.host_facts(tmp_path)["memory_bytes"] == 50 << 30


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023", "535.104.05"),
        ("NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (builder@host)", "570.86.15"),
        ("NVIDIA UNIX Open Kernel Module for aarch64  580.65.06  Release Build  (builder@host)", "580.65.06"),
    ],
)
def test_the_driver_is_known_by_its_version_whichever_kernel_module_it_is(
    tmp_path: Path, line: str, version: str
) -> None:
    file = tmp_path / "proc/driver/nvidia/version"
    file.parent.mkdir(parents=True)
    file.write_text(f"NVRM version: {line}\nGCC version:  gcc version 11.4.0\n")
    assert provenance.host_facts(tmp_path)["driver"] == version


def test_what_cannot_be_read_is_unknown_not_guessed(tmp_path: Path) -> None:
    facts = provenance.host_facts(tmp_path)
    assert (facts["memory_bytes"], facts["driver"], facts["sockets"]) == (None, None, None)


def test_only_variables_that_change_a_run_are_kept_and_no_secret() -> None:
    environ = {
        "OMP_NUM_THREADS": "2",
        "GOMP_SPINCOUNT": "0",
        "OMP_WAIT_POLICY": "passive",
        "KMP_BLOCKTIME": "0",
        "OMPI_MCA_btl": "self",
        "PBS_JOBID": "7.s",
        "SLURM_JOB_ID": "8",
        "LOADEDMODULES": "cuda/12",
        "TF_API_KEY": "x",
        "NCCL_TOKEN": "x",
        "HOME": "/home/u",
        "OMPI_COMM_WORLD_RANK": "1",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    kept = provenance.environment(environ)
    assert set(kept) == {
        "GOMP_SPINCOUNT",
        "OMP_WAIT_POLICY",
        "KMP_BLOCKTIME",
        "OMP_NUM_THREADS",
        "PBS_JOBID",
        "SLURM_JOB_ID",
        "LOADEDMODULES",
        "OMPI_MCA_btl",
    }


def test_versions_and_command() -> None:
    record = provenance.record({"cudnn": "9"}, {"mpi": "Open MPI v5"})
    assert record["versions"]["harness"] == harness.__version__
    assert record["versions"]["python"] == platform.python_version()
    assert (record["versions"]["cudnn"], record["versions"]["mpi"]) == ("9", "Open MPI v5")
    assert record["command"][0] == sys.executable
    assert set(record) == {"versions", "host", "env", "command", "must_match"}


def test_the_runtime_imports_no_framework_and_no_table_library() -> None:
    """On a compute node these may be missing, and their import would be timed."""
    code = (
        "import sys, harness.runtime.main, harness.runtime.samplers, harness.runtime.engine_none, harness.comm.none, "
        "harness.workloads.replay\n"
        "heavy = {'torch', 'tensorflow', 'keras', 'numpy', 'pandas', 'pyarrow', 'mpi4py', 'click', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
