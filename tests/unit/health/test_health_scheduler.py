"""What doctor says of schedulers whose answers are scripted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from health_support import by_name, patient, program

from harness.cli.health import scheduler
from harness.cli.health.check import Check
from harness.jobs.survey.pbs import lacks_throttle

PBS = "Server: head\n    pbs_version = {version}\n    default_queue = gpu\n    job_history_enable = {history}\n"
QUEUE = (
    "Queue: gpu\n    enabled = True\n    started = {started}\n    resources_max.walltime = 24:00:00\n"
    "    resources_max.nodect = 4\n    resources_min.nodect = 2\n    max_array_size = 100\n"
)
NODES = "n1\n     resources_available.ncpus = 8\n     resources_available.ngpus = 2\n"


@pytest.fixture
def pbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """pbs(**cluster fields) → checks of a PBS that answers as scripted."""

    def looked_at(
        version: str = "23.06.06", history: str = "True", started: str = "True", rc: int = 0, **fields: Any
    ) -> dict[str, Check]:
        for command in ("qsub", "qdel"):
            program(tmp_path / command, "exit 1")
        texts = {"-B": PBS.format(version=version, history=history), "-Q": QUEUE.format(started=started)}
        cases = "\n".join(f"{flag}) cat <<'E'\n{text}E\n;;" for flag, text in texts.items())
        refusal = f"echo 'qstat: cannot connect to server head (errno=15010)' >&2; exit {rc}"
        program(tmp_path / "qstat", refusal if rc else f"case $1 in\n{cases}\nesac")
        program(tmp_path / "pbsnodes", f"cat <<'E'\n{NODES}E")
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        settings = {"scheduler": "pbs", "node": {"sockets": 2, "cores_per_socket": 4, "gpus": 2}, "queue": "gpu"}
        return by_name(scheduler.check(patient(tmp_path, in_job=False, **{**settings, **fields})))

    return looked_at


def test_a_file_that_agrees(pbs: Any) -> None:
    limits = {"max_walltime": "12:00:00", "min_nodes": 2, "max_nodes": 4, "max_array_size": 100}
    found = pbs(queues={"gpu": limits})
    assert {check.status for check in found.values()} == {"ok"}
    assert set(found) == {"commands", "server", "history", "queue gpu", "nodes"}


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"min_nodes": 2, "max_walltime": "48:00:00"}, "max_walltime is 48:00:00 in the file, 24:00:00 at the server"),
        ({"min_nodes": 2, "max_nodes": 9}, "max_nodes is 9 in the file, 4"),
        ({}, "min_nodes is 1 in the file, 2"),
        ({"min_nodes": 2, "max_array_size": 1000}, "max_array_size is 1000 in the file, 100"),
    ],
)
def test_limits_beyond_the_servers_own(pbs: Any, limits: dict[str, Any], words: str) -> None:
    check = pbs(queues={"gpu": limits})["queue gpu"]
    assert (check.status, words in check.message) == ("warning", True)


def test_queues_that_are_unknown_or_shut(pbs: Any) -> None:
    check = pbs(queue="gpuu")["queue gpuu"]
    assert (check.status, "did you mean 'gpu'?" in check.remedy) == ("failure", True)
    assert pbs(started="False")["queue gpu"].status == "warning"


def test_an_old_pbs_without_history(pbs: Any) -> None:
    found = pbs(version="19.1.3", history="False", queues={"gpu": {"min_nodes": 2}})
    assert found["history"].status == "note"
    assert (found["array throttle"].status, "array_throttle: false" in found["array throttle"].remedy) == (
        "warning",
        True,
    )
    assert "array throttle" not in pbs(version="19.1.3", directives={"array_throttle": False})


@pytest.mark.parametrize(("cores", "status"), [(2, "ok"), (4, "warning")])
def test_nodes_whose_hardware_threads_pbs_counts(pbs: Any, cores: int, status: str) -> None:
    node = {"sockets": 2, "cores_per_socket": cores, "gpus": 2}
    check = pbs(node=node, directives={"ncpus_per_core": 2})["nodes"]
    assert (check.status, f"{4 * cores} hardware threads" in check.message) == (status, True)


def test_nodes_smaller_than_the_file_says(pbs: Any) -> None:
    check = pbs(node={"sockets": 2, "cores_per_socket": 20, "gpus": 4})["nodes"]
    assert check.status == "warning"
    assert "none of 1 nodes has 40 cores and 4 GPUs; n1 has 8 and 2" in check.message


def test_a_server_that_does_not_answer(pbs: Any) -> None:
    found = pbs(rc=162)
    assert found["server"].status == "failure"
    assert "qstat -B -f returned 162: qstat: cannot connect to server" in found["server"].message
    assert set(found) == {"commands", "server"}


def test_another_scheduler_than_the_file_says(pbs: Any) -> None:
    assert pbs(scheduler="torque")["server"].status == "failure"


def test_commands_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program(tmp_path / "sbatch", "exit 0")
    for in_job, status in ((False, "failure"), (True, "note")):
        [check] = scheduler.check(patient(tmp_path, in_job))
        assert check.status == status
        assert "squeue, scancel, scontrol, sinfo" in check.message
        assert "sbatch" not in check.message


@pytest.mark.parametrize(
    ("version", "lacks"),
    [("22.05.10", True), ("22.05.11", False), ("23.06.06", False), ("2021.1.3", True), ("2022.1.1", True), ("", False)],
)
def test_versions_of_openpbs_and_of_pbs_professional(version: str, lacks: bool) -> None:
    """The latter are counted by years."""
    assert lacks_throttle(version) == lacks
