"""Whole job scripts, byte for byte, and what bash and shellcheck think of them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from golden.job_cases import GOLDENS, cases

from harness.jobs.examples import examples

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "jobscripts" / "examples"
SCRIPTS = sorted([*GOLDENS.glob("*.sh"), *EXAMPLES.rglob("*.sh")])
SHELLCHECK = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or shutil.which("shellcheck")


@pytest.mark.parametrize("name", [name for name, _ in cases()])
def test_job_script(name: str) -> None:
    assert dict(cases())[name] == (GOLDENS / name).read_text()


def test_no_golden_is_left_over() -> None:
    assert {path.name for path in GOLDENS.iterdir()} == {name for name, _ in cases()}


def test_examples_are_what_the_shipped_files_give_today() -> None:
    """After a change on purpose: ``harness render --examples``, and read the difference."""
    rendered = dict(examples(ROOT))
    shipped = {str(path.relative_to(EXAMPLES)): path.read_text() for path in EXAMPLES.rglob("*.sh")}
    assert sorted(rendered) == sorted(shipped)
    for name, text in rendered.items():
        assert text == shipped[name], name


def test_every_shipped_cluster_and_sweep_has_an_example() -> None:
    clusters = {path.stem for path in (ROOT / "configs" / "clusters").glob("*.yml")}
    sweeps = {path.stem for path in (ROOT / "configs" / "sweeps").glob("*.yml")}
    assert {path.parent.name for path in EXAMPLES.glob("*/*.sh")} == clusters
    assert {path.stem for path in EXAMPLES.glob("*/*.sh")} == sweeps


def test_every_shipped_cluster_has_an_example_of_a_pack_and_of_an_array_where_it_has_any() -> None:
    for folder in EXAMPLES.iterdir():
        names = {path.name for path in (folder / "groups").iterdir()}
        arrays = set() if folder.name == "local" else {"array.sh"}
        assert names == arrays | {"pack.sh", "attempt.sh"}, folder


def test_bash_can_read_every_script() -> None:
    for script in SCRIPTS:
        done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), script


@pytest.mark.skipif(SHELLCHECK is None, reason="no shellcheck")
def test_shellcheck_has_nothing_to_say() -> None:
    done = subprocess.run([str(SHELLCHECK), "--norc", *map(str, SCRIPTS)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


# What a real OpenPBS takes in a directive; what it rejects is among its recorded answers in tests/transcripts.
PBS_WORDS = (
    r"-N [a-z][a-z0-9]{0,14}",
    r"-S /bin/bash",
    r"-j oe",
    r"-o /(dev/null|[\w./-]+)",
    r"-m n",
    r"-k doe",
    r"-[qAP] [\w.-]+",
    r"-l walltime=\d{2,}:[0-5]\d:[0-5]\d",
    r"-l place=(scatter|pack|free)(:excl)?",
    r"-l filesystems=\w+(:\w+)*",
)
SELECT = r"-l select=[1-9]\d*(:(ncpus|mpiprocs|ngpus)=[1-9]\d*|:mem=[1-9]\d*mb|:system=\w+)*"
SUMS = (r"-l (ncpus|ngpus)=[1-9]\d*", r"-l mem=[1-9]\d*mb", r"-l storage=[\w/+]+", r"-l jobfs=\d+gb")
NODES = (r"-l nodes=[1-9]\d*:ppn=[1-9]\d*(:gpus=[1-9]\d*)?", r"-l mem=[1-9]\d*mb")


def test_pbs_directives_are_such_as_a_real_server_takes() -> None:
    checked = 0
    for script in SCRIPTS:
        head = script.read_text().split("\n\n")[0]
        directives = [line.removeprefix("#PBS ") for line in head.splitlines() if line.startswith("#PBS")]
        if not directives:
            continue
        checked += 1
        is_array = any(line.startswith(("-J", "-t")) for line in directives)
        rerun = "-r y" if is_array and "torque" not in str(script.relative_to(ROOT)) else "-r n"
        known = [*PBS_WORDS, rerun, r"-[Jt] 0-[1-9]\d*(%[1-9]\d*)?"]
        assert not [
            line for line in directives if not any(re.fullmatch(p, line) for p in [*known, SELECT, *SUMS, *NODES])
        ], script
        flags = [line.split("=")[0] if line.startswith("-l") else line.split()[0] for line in directives]
        assert len(flags) == len(set(flags)), f"{script}: the last of two would win silently"
        assert not ("-l select" in flags and set(flags) & {"-l ncpus", "-l mem", "-l nodes"}), script
    assert checked > 15


def test_the_program_starts_under_map_by_socket_wherever_open_mpi_launches() -> None:
    for script in EXAMPLES.glob("*/*.sh"):
        assert " --map-by socket" in script.read_text(), script
