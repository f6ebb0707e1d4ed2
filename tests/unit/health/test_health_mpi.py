"""What doctor says of launchers and libraries that are right, wrong, foreign or missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from health_support import by_name, interpreter, patient, program

from harness.cli.health import mpi
from harness.cli.health.check import Check

FIVE = 'echo "mpirun (Open MPI) 5.0.11"'
LIBRARY = {"module": "mpi4py", "version": "4.1.2", "library": "Open MPI v5.0.11, package: x"}


def looked_at(tmp_path: Path, launcher: str, library: object, **fields: object) -> dict[str, Check]:
    python = interpreter(tmp_path / "python", {"module mpi4py": library})
    command = program(tmp_path / "launch", launcher)
    settings = {"command": str(command), "flavour": fields.pop("flavour", "openmpi5")}
    return by_name(mpi.check(patient(tmp_path, python=str(python), mpi=settings, **fields)))


def test_a_launcher_and_a_library_of_one_mpi(tmp_path: Path) -> None:
    found = looked_at(tmp_path, FIVE, LIBRARY)
    assert {name: check.status for name, check in found.items()} == {"launcher": "ok", "mpi4py": "ok"}
    assert found["launcher"].facts == {"family": "openmpi", "version": "5.0.11"}


@pytest.mark.parametrize(
    ("launcher", "flavour", "remedy"),
    [
        ('echo "mpirun (Open MPI) 4.1.4"', "openmpi5", "mpi: {flavour: openmpi4}"),
        (FIVE, "mpich", "mpi: {flavour: openmpi5}"),
        ('echo "HYDRA build details:"; echo "    Version:   4.1.2"', "openmpi5", "mpi: {flavour: mpich}"),
        ('echo "mpirun (Open MPI) 3.1.6"', "openmpi4", "use Open MPI 4 or 5"),
    ],
)
def test_a_launcher_of_another_flavour_than_the_file_says(
    tmp_path: Path, launcher: str, flavour: str, remedy: str
) -> None:
    check = looked_at(tmp_path, launcher, LIBRARY, flavour=flavour)["launcher"]
    assert check.status == "failure"
    assert remedy in check.remedy


def test_a_library_of_another_mpi_than_the_launcher(tmp_path: Path) -> None:
    library = {**LIBRARY, "library": "MPICH Version:      4.1.2"}
    check = looked_at(tmp_path, FIVE, library)["mpi4py"]
    assert check.status == "failure"
    assert "each rank would believe to be alone" in check.message
    assert "--no-binary mpi4py" in check.remedy


def test_no_launcher_no_mpi4py(tmp_path: Path) -> None:
    python = interpreter(tmp_path / "python", {"module mpi4py": {"module": "mpi4py", "error": "ImportError: libmpi"}})
    settings = {"command": str(tmp_path / "gone")}
    found = by_name(mpi.check(patient(tmp_path, python=str(python), mpi=settings)))
    assert (found["launcher"].status, found["mpi4py"].status) == ("failure", "warning")
    assert "No such file" in found["launcher"].message
    assert "libmpi" in found["mpi4py"].message


def test_an_interpreter_that_is_killed_is_told_with_its_signal(tmp_path: Path) -> None:
    check = looked_at(tmp_path, FIVE, "kill -SEGV $$")["mpi4py"]
    assert check.status == "warning"
    assert "SIGSEGV" in check.message


def test_an_environment_that_cannot_be_set_up_is_one_failure(tmp_path: Path) -> None:
    found = looked_at(tmp_path, FIVE, LIBRARY, modules=["no such module"])
    assert list(found) == ["environment"]
    assert found["environment"].status == "failure"
    assert "module load failed: no such module" in found["environment"].message


def test_a_prelude_is_what_jobs_get(tmp_path: Path) -> None:
    launcher = 'echo "mpirun (Open MPI) $VERSION_SET_BY_PRELUDE"'
    prelude = ["export VERSION_SET_BY_PRELUDE=4.1.9"]
    check = looked_at(tmp_path, launcher, LIBRARY, prelude=prelude, flavour="openmpi4")["launcher"]
    assert (check.status, check.facts["version"]) == ("ok", "4.1.9")


@pytest.mark.parametrize(
    ("ways", "scheduler", "options", "status"),
    [
        ("slurm ssh", "slurm", [], "ok"),
        ("tm ssh", "pbs", [], "ok"),
        ("ssh", "pbs", [], "warning"),
        ("ssh", "torque", ["--prtemca", "plm_ssh_agent", "pbs_tmrsh"], "ok"),
        ("", "slurm", [], "note"),
    ],
)
def test_how_other_nodes_are_reached(
    tmp_path: Path, ways: str, scheduler: str, options: list[str], status: str
) -> None:
    program(tmp_path / "prte_info", "\n".join(f'echo "   MCA plm: {way} (x)"' for way in ways.split()))
    python = interpreter(tmp_path / "python", {"module mpi4py": LIBRARY})
    settings = {"command": str(program(tmp_path / "launch", FIVE)), "options": options}
    found = by_name(mpi.check(patient(tmp_path, python=str(python), mpi=settings, scheduler=scheduler, nodes=4)))
    assert found["other nodes"].status == status
    if status == "warning":
        assert "--prtemca, plm_ssh_agent, pbs_tmrsh" in found["other nodes"].remedy
