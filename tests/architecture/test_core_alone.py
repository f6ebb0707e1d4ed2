"""Where only the core is installed, as on a login node, a verb that needs more says what brings it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.main import EXTRAS

ROOT = Path(__file__).resolve().parents[2]
#: packages whose name on PyPI is another than the one that is imported
ON_PYPI = {"PIL": "pillow", "skimage": "scikit-image", "sklearn": "scikit-learn"}
PROGRAM = """
import sys
for name in %r:
    sys.modules[name] = None
from harness.cli.main import main
main()
"""


def without_extras(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", PROGRAM % sorted(EXTRAS), *words]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words",
    [
        ("data", "make", "mnist", "--to", "/tmp/none"),
        ("data", "convert", "digits:mnist", "--encoding", "lmdb"),
        ("next", "configs/sweeps/replay.yml"),
    ],
    ids=" ".join,
)
def test_what_is_missing_is_said_with_what_brings_it(words: tuple[str, ...]) -> None:
    done = without_extras(*words)
    assert done.returncode == 2, done.stderr
    assert "is not installed in" in done.stderr and "pip install -e '.[" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [("plan", "configs/sweeps/replay.yml"), ("schema", "sweep"), ("data", "describe"), ("collect", "--dictionary")],
    ids=" ".join,
)
def test_the_core_suffices_on_a_login_node(words: tuple[str, ...]) -> None:
    done = without_extras(*words)
    assert done.returncode == 0, done.stderr


def test_the_extras_bring_them() -> None:
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert any(line.startswith(ON_PYPI.get(package, package)) for line in project[extra]), package
