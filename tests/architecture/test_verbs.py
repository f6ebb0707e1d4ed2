"""Every verb is documented, starts quickly in spirit (imports nothing heavy) and shows an example."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.main import VERBS

ROOT = Path(__file__).resolve().parents[2]
HEAVY = [
    "tensorflow",
    "keras",
    "torch",
    "torchvision",
    "horovod",
    "mpi4py",
    "numpy",
    "pandas",
    "pyarrow",
    "matplotlib",
    "scipy",
]
SWEEP = str(ROOT / "configs/sweeps/quickstart.yml")

PROBE = """
import json, sys
from harness.cli.main import cli
try:
    cli(json.loads(sys.argv[1]), standalone_mode=False)
finally:
    print("\\nIMPORTED " + json.dumps(sorted({m.split(".")[0] for m in sys.modules})))
"""


def imported_by(arguments: list[str], cwd: Path) -> tuple[set[str], str]:
    result = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(arguments)], capture_output=True, text=True, cwd=cwd, check=False
    )
    assert "IMPORTED " in result.stdout, result.stderr
    text, _, modules = result.stdout.rpartition("IMPORTED ")
    return set(json.loads(modules)), text + result.stderr


def test_top_level_help_imports_neither_frameworks_nor_models(tmp_path: Path) -> None:
    modules, text = imported_by(["--help"], tmp_path)
    assert not modules & {*HEAVY, "pydantic", "yaml", "rich", "jinja2"}
    assert all(verb in text for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verbs_help_has_an_example_and_imports_nothing_heavy(verb: str, tmp_path: Path) -> None:
    modules, text = imported_by([verb, "--help"], tmp_path)
    assert not modules & set(HEAVY)
    assert "Example" in text and f"harness {verb}" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", SWEEP],
        ["plan", SWEEP, "--json"],
        ["render", SWEEP, "-o", "out"],
        ["schema", "sweep"],
        ["status", SWEEP],
    ],
    ids=" ".join,
)
def test_login_verbs_import_no_framework_and_no_data_library(arguments: list[str], tmp_path: Path) -> None:
    modules, _ = imported_by(arguments, tmp_path)
    assert not modules & set(HEAVY)


@pytest.mark.parametrize("verb", VERBS)
def test_the_readme_names_every_verb(verb: str) -> None:
    assert f"`harness {verb}" in (ROOT / "README.md").read_text(encoding="utf-8")
