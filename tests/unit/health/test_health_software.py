"""What doctor says of interpreters, frameworks, Horovod builds and GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from health_support import INTERPRETER, by_name, interpreter, patient

from harness.cli.health import software
from harness.cli.health.check import Check, Needs

TORCH = {"module": "torch", "version": "2.3.0", "gpus": 0, "cuda": None, "seconds": 2.0}
HOROVOD = {"module": "horovod.torch", "version": "0.28.1", "features": ["mpi"], "seconds": 0.1}
ABSENT = {"error": "ModuleNotFoundError: No module named 'x'"}


def looked_at(
    tmp_path: Path,
    torch: Any = (TORCH, HOROVOD),
    gpus: int = 0,
    expected: int = 0,
    in_job: bool = True,
    needs: Needs | None = None,
) -> dict[str, Check]:
    said = {**INTERPRETER, "host": {"gpus": ["V100"] * gpus}}
    answers: dict[str, Any] = {
        "interpreter": said,
        "module torch horovod.torch": torch if isinstance(torch, str) else list(torch),
        "module tensorflow horovod.tensorflow": [
            {"module": "tensorflow", **ABSENT},
            {"module": "horovod.tensorflow", "error": "ModuleNotFoundError: No module named 'horovod'"},
        ],
    }
    python = interpreter(tmp_path / "python", answers)
    node = {"sockets": 1, "cores_per_socket": 4, "gpus": expected}
    return by_name(software.check(patient(tmp_path, in_job, needs, python=str(python), node=node)))


def test_what_is_there_and_what_is_not_needed(tmp_path: Path) -> None:
    found = looked_at(tmp_path)
    assert {name: check.status for name, check in found.items()} == {
        "interpreter": "ok",
        "torch": "ok",
        "horovod.torch": "ok",
        "tensorflow": "note",
        "horovod.tensorflow": "note",
        "driver": "ok",
    }
    assert "2.3.0 (CPU only)" in found["torch"].message
    assert "built with mpi" in found["horovod.torch"].message


def test_what_a_sweep_needs_must_be_there(tmp_path: Path) -> None:
    found = looked_at(tmp_path, needs=Needs(frozenset({"tensorflow", "horovod"}), frozenset()))
    assert found["tensorflow"].status == found["horovod.tensorflow"].status == "failure"
    assert "pip install" in found["tensorflow"].remedy
    assert "make horovod" in found["horovod.tensorflow"].remedy


def test_an_import_that_kills_the_interpreter_is_told(tmp_path: Path) -> None:
    found = looked_at(tmp_path, torch='echo "undefined symbol: _Z1x" >&2; kill -ABRT $$')
    assert found["torch"].status == "warning"
    assert "undefined symbol" in found["torch"].message
    assert "SIGABRT" in found["torch"].message
    assert found["frameworks"].status == "warning"


def test_a_horovod_without_mpi_fails_and_one_without_nccl_warns_where_there_are_gpus(tmp_path: Path) -> None:
    bare = {**HOROVOD, "features": ["gloo"]}
    assert looked_at(tmp_path, torch=(TORCH, bare))["horovod.torch"].status == "failure"
    cuda = {**TORCH, "cuda": "12.1", "gpus": 4}
    check = looked_at(tmp_path, torch=(cuda, HOROVOD), gpus=4, expected=4)["horovod.torch"]
    assert check.status == "warning"
    assert "HOROVOD_GPU_OPERATIONS=NCCL" in check.remedy


@pytest.mark.parametrize(
    ("gpus", "expected", "in_job", "status"),
    [
        (0, 0, True, "ok"),
        (4, 4, True, "ok"),
        (0, 4, True, "failure"),
        (2, 4, True, "warning"),
        (4, 2, True, "warning"),
        (0, 4, False, "note"),
    ],
)
def test_gpus_against_the_file(tmp_path: Path, gpus: int, expected: int, in_job: bool, status: str) -> None:
    cuda = {**TORCH, "cuda": "12.1", "gpus": gpus}
    assert looked_at(tmp_path, (cuda, HOROVOD), gpus, expected, in_job)["driver"].status == status


def test_a_framework_that_sees_fewer_gpus_than_the_driver(tmp_path: Path) -> None:
    python_answers = looked_at(tmp_path, ({**TORCH, "cuda": "11.0", "gpus": 0}, HOROVOD), gpus=4, expected=4)
    # the framework's own check comes first by the same name, the one about GPUs after it
    assert python_answers["torch"].message == "torch sees 0 of 4 GPUs"
    assert python_answers["torch"].area == "gpus"


def test_a_cpu_build_where_nodes_have_gpus(tmp_path: Path) -> None:
    checks = looked_at(tmp_path, gpus=0, expected=4, in_job=False)
    assert checks["torch"].status == "warning"
    assert "CUDA build" in checks["torch"].remedy


def test_an_interpreter_that_is_missing_or_lacks_the_harness(tmp_path: Path) -> None:
    for in_job, status in ((True, "failure"), (False, "warning")):
        missing = patient(tmp_path, in_job, python=str(tmp_path / "none"))
        [check] = software.check(missing)
        assert (check.status, check.area) == (status, "software")
    broken = interpreter(tmp_path / "python", {}, "echo 'No module named pydantic' >&2; exit 1")
    [check] = software.check(patient(tmp_path, python=str(broken)))
    assert "No module named pydantic (exit code 1)" in check.message
