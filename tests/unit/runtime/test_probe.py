"""The probe that doctor starts in interpreters and under launchers: one line an answer, whatever else is printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.runtime import probe


def lines(words: list[str], **environment: str) -> tuple[int, list[dict[str, object]]]:
    """(exit code, answers) of the probe as a program."""
    done = subprocess.run(
        [sys.executable, "-m", "harness.runtime.probe", *words],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    found = [line.partition(probe.MARK)[2] for line in done.stdout.splitlines() if probe.MARK in line]
    return done.returncode, [json.loads(line) for line in found]


def module_on_path(tmp_path: Path, name: str, text: str) -> dict[str, str]:
    (tmp_path / f"{name}.py").write_text(text)
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}


def test_the_interpreter() -> None:
    code, [facts] = lines(["interpreter"])
    assert code == 0
    assert facts["executable"] == sys.executable
    assert facts["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))  # type: ignore[index]


def test_modules_that_print_fail_and_crash(tmp_path: Path) -> None:
    environment = module_on_path(tmp_path, "noisy_one", "__version__ = '1.2'\nprint('hello', end='')")
    module_on_path(tmp_path, "broken_one", "raise OSError('libmpi.so.40: cannot open\\nsecond line')")
    module_on_path(tmp_path, "crashing_one", "import os; os._exit(139)")
    code, found = lines(["module", "noisy_one", "broken_one", "no_such_module", "crashing_one", "json"], **environment)
    assert code == 139
    assert [facts["module"] for facts in found] == ["noisy_one", "broken_one", "no_such_module"]
    assert found[0]["version"] == "1.2"
    assert found[1]["error"] == "OSError: libmpi.so.40: cannot open"
    assert found[2]["error"] == "ModuleNotFoundError: No module named 'no_such_module'"


def test_a_rank_says_where_it_is() -> None:
    launcher = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}
    launcher |= {"OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    code, [facts] = lines(["rank"], **launcher)
    assert code == 0
    assert (facts["rank"], facts["world"], facts["local_rank"], facts["local_world"]) == (3, 4, 1, 2)
    assert facts["cpus"] == sorted(os.sched_getaffinity(0))
    assert len(facts["cores"]) == len(facts["cpus"])  # type: ignore[arg-type]
    assert facts["may_confine"] is True


def test_nested_launchers_are_an_error_not_a_traceback() -> None:
    nested = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "PMI_RANK": "1", "PMI_SIZE": "4"}
    code, [facts] = lines(["rank"], **nested)
    assert code == 1
    assert "two launchers are nested" in str(facts["error"])


@pytest.mark.parametrize("words", [[], ["nothing"], ["module"], ["storage"], ["rank", "2"], ["interpreter", "x"]])
def test_anything_else_is_refused(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert probe.main(words) == 1
    assert "valid: module, interpreter, rank, storage" in capfd.readouterr().out
