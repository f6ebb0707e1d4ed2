"""Whole job scripts, byte for byte, and what bash and shellcheck think of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from golden.job_cases import GOLDENS, cases

from harness.jobs.examples import examples

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "jobscripts" / "examples"
SCRIPTS = sorted([*GOLDENS.glob("*.sh"), *EXAMPLES.glob("*/*.sh")])
SHELLCHECK = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or shutil.which("shellcheck")


@pytest.mark.parametrize("name", [name for name, _ in cases()])
def test_job_script(name: str) -> None:
    assert dict(cases())[name] == (GOLDENS / name).read_text()


def test_no_golden_is_left_over() -> None:
    assert {path.name for path in GOLDENS.iterdir()} == {name for name, _ in cases()}


def test_examples_are_what_the_shipped_files_give_today() -> None:
    """After a change on purpose: ``python -m harness.jobs.examples``, and read the difference."""
    rendered = dict(examples(ROOT))
    shipped = {str(path.relative_to(EXAMPLES)): path.read_text() for path in EXAMPLES.glob("*/*.sh")}
    assert sorted(rendered) == sorted(shipped)
    for name, text in rendered.items():
        assert text == shipped[name], name


def test_every_shipped_cluster_and_sweep_has_an_example() -> None:
    clusters = {path.stem for path in (ROOT / "configs" / "clusters").glob("*.yml")}
    sweeps = {path.stem for path in (ROOT / "configs" / "sweeps").glob("*.yml")}
    assert {path.parent.name for path in EXAMPLES.glob("*/*.sh")} == clusters
    assert {path.stem for path in EXAMPLES.glob("*/*.sh")} == sweeps


def test_bash_can_read_every_script() -> None:
    for script in SCRIPTS:
        done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), script


@pytest.mark.skipif(SHELLCHECK is None, reason="no shellcheck")
def test_shellcheck_has_nothing_to_say() -> None:
    done = subprocess.run([str(SHELLCHECK), "--norc", *map(str, SCRIPTS)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_program_starts_under_map_by_socket_wherever_open_mpi_launches() -> None:
    for script in EXAMPLES.glob("*/*.sh"):
        assert " --map-by socket" in script.read_text(), script
