"""Look around on a login node: everything ``harness init`` can find out without being told. Nothing is changed."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.jobs.survey import machine
from harness.jobs.survey.ask import Runner, ask_any
from harness.jobs.survey.facts import Batch, SiteFacts
from harness.jobs.survey.machine import Mount, Processors
from harness.jobs.survey.mpi import MpiVersion, recognise

#: variables in which sites name a user's directory on the fast shared file system, the likeliest first
PLACES = ("SCRATCH", "PSCRATCH", "HPCTMP", "WORK", "WORKDIR", "FASTDIR", "PROJECT", "SCRATCHDIR", "CSCRATCH")
_FAST = ("lustre", "gpfs", "beegfs", "wekafs", "ceph", "panfs", "orangefs")
_USEFUL = re.compile(
    r"(open-?mpi|ompi|hpcx|mpich|cray-mpich|impi|intel-?mpi|intel-oneapi-mpi|cuda|cudatoolkit|cudnn|nccl"
    r"|\w*conda\w*|miniforge\w*|python|py-?torch|tensorflow|horovod|singularity\w*|apptainer)(/.*)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Surroundings:
    """What was found. ``site`` is None where there is no scheduler; ``launcher`` None where no mpirun is in PATH.

    ``shared_place``: a directory of this user on a shared file system, and how it was found; empty where none was.
    """

    host: str
    site: SiteFacts | None
    processors: Processors | None
    gpus: tuple[tuple[str, int | None], ...] = ()
    modules: tuple[str, ...] = ()
    launcher: MpiVersion | None = None
    launcher_path: str = ""
    container: str = ""
    shared_place: tuple[str, str] = ("", "")
    python: str = sys.executable
    python_is_shared: bool = False


def look(schedulers: Sequence[Batch], run: Runner, environ: Mapping[str, str] = os.environ) -> Surroundings:
    """Ask the first of the schedulers that answers, and this machine.

    Raises:
        NoAnswer: no scheduler could be asked.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", os.defpath)])
    mpirun = shutil.which("mpirun", path=path) or shutil.which("mpiexec", path=path) or ""
    said = run([mpirun, "--version"]) if mpirun else None
    mounts = machine.parse_mounts(_read(Path("/proc/self/mounts")))
    under_python = machine.mount_of(os.path.realpath(sys.executable), mounts)
    return Surroundings(
        host=os.uname().nodename,
        site=ask_any(schedulers, run),
        processors=machine.parse_lscpu(run(["lscpu", "-J"]).stdout),
        gpus=tuple(machine.parse_nvidia_smi(run(machine.NVIDIA_SMI).stdout)),
        modules=tuple(useful_modules(_modules(run))),
        launcher=recognise(said.stdout + said.stderr) if said else None,
        launcher_path=mpirun,
        container=next((name for name in ("apptainer", "singularity") if shutil.which(name)), ""),
        shared_place=shared_place(environ, mounts, getpass.getuser(), _is_mine),
        python_is_shared=under_python is not None and under_python.is_shared,
    )


def _modules(run: Runner) -> list[str]:
    """A login shell, since ``module`` is a function that the site's profile defines."""
    answer = run(["bash", "-lc", "command -v module >/dev/null && module -t avail 2>&1"])
    return machine.parse_modules(answer.stdout) if answer.returncode == 0 else []


def useful_modules(names: Iterable[str]) -> list[str]:
    """The modules that a training job may need."""
    return [name for name in names if _USEFUL.fullmatch(name)]


def shared_place(
    environ: Mapping[str, str], mounts: Iterable[Mount], user: str, is_mine: Callable[[str], bool]
) -> tuple[str, str]:
    """A directory of this user's on a shared file system and how it was found, the fastest kind first."""
    for name in PLACES:
        if (value := environ.get(name, "").rstrip("/")) and is_mine(value):
            return value, f"${name} on this node"
    shared = sorted((m for m in mounts if m.is_shared), key=lambda mount: mount.kind not in _FAST)
    for mount in shared:
        for place in (user, f"users/{user}", f"scratch/{user}", f"home/{user}"):
            candidate = f"{mount.path.rstrip('/')}/{place}"
            if is_mine(candidate):
                return candidate, f"a directory of yours on {mount.kind}"
    return "", ""


def _is_mine(path: str) -> bool:
    return os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)  # noqa: PTH112  # a plain function of text


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return ""
