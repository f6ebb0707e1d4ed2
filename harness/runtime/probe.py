"""``python -m harness.runtime.probe WHAT …``: what ``harness doctor`` asks of an interpreter, a rank or a directory.

Each answer is one line, ``harness-probe:`` and a JSON object, whatever else the libraries print; several ranks may
share one output. Nothing but the asked-for modules is imported, so that a broken one condemns nothing but itself.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.errors import HarnessError, UserError, nearest
from harness.runtime import affinity, provenance, ranks, storage_probe

#: begins the line that carries an answer
MARK = "harness-probe:"
_FEATURES = ("mpi", "gloo", "nccl", "ccl", "ddl")


def answer_line(facts: dict[str, Any]) -> str:
    return f"{MARK}{json.dumps(facts, separators=(',', ':'))}\n"


def interpreter() -> dict[str, Any]:
    """Versions of what is installed, this host, and the variables that steer a run."""
    return {
        "executable": sys.executable,
        "versions": provenance.package_versions(),
        "host": provenance.host_facts(),
        "env": provenance.environment(os.environ),
    }


def module(name: str) -> dict[str, Any]:
    """Import a module and say how long it took, its version, and what it sees of the machine.

    A failure is an answer too: ``error``. A crash of the interpreter leaves no line at all.
    """
    start = time.perf_counter()
    try:
        loaded = importlib.import_module(name)
        facts = _FACTS.get(name, lambda _module: {})(loaded)
    # a binary made for other versions fails in ways of its own: ImportError, OSError, TensorFlow's NotFoundError
    except Exception as error:
        text = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
        return {"module": name, "error": text}
    version = str(getattr(loaded, "__version__", "")) or None
    return {"module": name, "version": version, **facts, "seconds": time.perf_counter() - start}


def _torch(torch: Any) -> dict[str, Any]:
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    names = [torch.cuda.get_device_name(index) for index in range(gpus)]
    return {"gpus": gpus, "gpu_names": names, "cuda": torch.version.cuda, "nccl": _nccl_version(torch)}


def _nccl_version(torch: Any) -> str | None:
    with suppress(Exception):  # a build without NCCL has no such function, or one that fails
        return ".".join(str(part) for part in torch.cuda.nccl.version())
    return None


def _tensorflow(tensorflow: Any) -> dict[str, Any]:
    build = tensorflow.sysconfig.get_build_info()
    gpus = len(tensorflow.config.list_physical_devices("GPU"))
    return {"gpus": gpus, "cuda": build.get("cuda_version") if build.get("is_cuda_build") else None}


def _horovod(hvd: Any) -> dict[str, Any]:
    """What Horovod was built with, as ``horovodrun --check-build`` has it; it is not started."""
    features = [name for name in _FEATURES if getattr(hvd, f"{name}_built")()]
    return {"version": importlib.import_module("horovod").__version__, "features": features}


def _mpi4py(_module: Any) -> dict[str, Any]:
    """The MPI library that mpi4py really loads; MPI itself is not started, which some login nodes forbid."""
    importlib.import_module("mpi4py").rc.initialize = False
    library = importlib.import_module("mpi4py.MPI").Get_library_version()
    return {"library": library.strip("\0 \n").partition("\n")[0]}


_FACTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "torch": _torch,
    "tensorflow": _tensorflow,
    "horovod.torch": _horovod,
    "horovod.tensorflow": _horovod,
    "mpi4py": _mpi4py,
}


def rank(with_mpi: bool) -> dict[str, Any]:
    """Where this rank is and which CPUs its launcher allowed it; with MPI also the world that MPI itself sees."""
    place = ranks.detect(os.environ, os.uname().nodename)
    cpus = sorted(os.sched_getaffinity(0))
    cores = affinity.cores_of(cpus)
    facts = {**vars(place), "cpus": cpus, "cores": [cores[cpu] for cpu in cpus], "may_confine": _may_confine(cpus)}
    return {**facts, **_in_mpi()} if with_mpi else facts


def _may_confine(cpus: list[int]) -> bool:
    """Whether this process may give up CPUs, as ranks do that were bound to more than they asked for."""
    confined = affinity.confine(cpus[:1]) == tuple(cpus[:1])
    return affinity.confine(cpus) == tuple(cpus) and confined


def _in_mpi() -> dict[str, Any]:
    mpi = importlib.import_module("mpi4py.MPI")
    world = mpi.COMM_WORLD
    total = world.allreduce(world.Get_rank())
    return {"mpi_world": world.Get_size(), "mpi_rank": world.Get_rank(), "mpi_sum_of_ranks": total}


def storage(path: str, with_speed: bool) -> dict[str, Any]:
    """Whether a directory is there, may be written, and has room; where asked for also how fast it is.

    A directory that may be read only is measured by the files in it.
    """
    place = Path(path)
    if not place.is_dir():
        return {"path": path, "exists": False, "may_make": _may_make(place)}
    room = os.statvfs(place)
    writable = storage_probe.is_writable(place)
    facts = {"path": path, "exists": True, "writable": writable, "free_bytes": room.f_bavail * room.f_frsize}
    facts |= {"total_bytes": room.f_blocks * room.f_frsize, "free_files": room.f_favail, "total_files": room.f_files}
    if with_speed:
        facts["speed"] = storage_probe.probe(place) if writable else storage_probe.probe_existing(place)
    return facts


def _may_make(place: Path) -> bool:
    """Whether a directory that does not exist could be made."""
    existing = next(parent for parent in place.absolute().parents if parent.exists())
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def answers(words: list[str]) -> Iterator[dict[str, Any]]:
    """Answers to ``interpreter``, ``module NAME…``, ``rank [--mpi]`` or ``storage DIRECTORY [--speed]``.

    Raises:
        UserError: for anything else.
    """
    options = {word for word in words if word.startswith("--")}
    what, *names = [word for word in words if word not in options] or [""]
    if what == "module" and names:
        yield from map(module, names)
    elif what == "interpreter" and not names:
        yield interpreter()
    elif what == "rank" and not names:
        yield rank("--mpi" in options)
    elif what == "storage" and len(names) == 1:
        yield storage(names[0], "--speed" in options)
    else:
        raise UserError(f"probe {' '.join(words)!r}: {nearest(what, ['module', 'interpreter', 'rank', 'storage'])}")


def main(words: list[str]) -> int:
    """Print each answer as soon as it is there; exit code 1 if one is an error."""
    failed = False

    def say(facts: dict[str, Any]) -> None:
        # one write, so that the lines of several ranks do not mix
        os.write(sys.stdout.fileno(), answer_line(facts).encode())

    try:
        for facts in answers(words):
            say(facts)
            failed = failed or "error" in facts
    except (HarnessError, OSError, ImportError) as error:
        say({"error": str(error)})
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
