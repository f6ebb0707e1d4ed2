"""How the CPUs that ranks got are judged, on topologies that this machine does not have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from health_support import patient

from harness.cli.health import binding
from harness.cli.health.check import Request
from harness.model.job import Placement


def rank(number: int, cpus: Sequence[int], node: str = "n1", local: int | None = None, **more: Any) -> dict[str, Any]:
    """A rank on a node of two sockets with four cores each."""
    return {
        "rank": number,
        "world": 2,
        "local_rank": number if local is None else local,
        "node": node,
        "cpus": list(cpus),
        "cores": [[cpu // 4, cpu] for cpu in cpus],
        "may_confine": True,
        **more,
    }


def request(nodes: int = 1, ranks: int = 2, cores: int = 4) -> Placement:
    fields = {"cluster": "c", "nodes": nodes, "ranks_per_node": ranks, "walltime_s": 60, "data_path": "/"}
    return Placement(cores_per_node=ranks * cores, **fields)


def test_each_rank_on_its_own_socket() -> None:
    checks = list(binding.judge([rank(0, range(4)), rank(1, range(4, 8))], request()))
    assert [check.status for check in checks] == ["ok", "ok"]
    assert checks[1].message == "on n1, asked for 4 cores: the launcher allowed CPUs 4-7"


def test_a_whole_node_is_shared_out() -> None:
    checks = list(binding.judge([rank(0, range(8)), rank(1, range(8))], request(cores=2)))
    assert [check.facts["allowed_cpus"] for check in checks] == [[0, 1], [2, 3]]
    assert checks[0].message.endswith("allowed CPUs 0-7, of which it keeps 0-1")
    assert {check.status for check in checks} == {"ok"}


def test_a_whole_node_is_not_shared_out_where_ranks_may_not_confine_themselves() -> None:
    checks = list(binding.judge([rank(n, range(8), may_confine=False) for n in (0, 1)], request(cores=2)))
    assert {check.status for check in checks} == {"warning"}
    assert "more cores than requested" in checks[0].message
    assert "--map-by socket:PE=2 --bind-to core" in checks[0].remedy


def test_one_core_where_four_were_asked_for() -> None:
    checks = list(binding.judge([rank(0, [0]), rank(1, [1])], request()))
    assert {check.status for check in checks} == {"warning"}
    assert "fewer cores than requested" in checks[0].message


def test_hardware_threads_are_no_cores() -> None:
    threads = rank(0, range(4))
    threads["cores"] = [[0, 0], [0, 0], [0, 1], [0, 1]]
    [check] = binding.judge([threads], request(ranks=1))
    assert check.status == "warning"
    assert "hardware threads as cores" in check.message


def test_nodes_are_judged_apart() -> None:
    ranks = [rank(0, range(4), "a", 0), rank(1, range(4), "b", 0)]
    assert {check.status for check in binding.judge(ranks, request(nodes=2, ranks=1))} == {"ok"}


@pytest.mark.parametrize(
    ("ranks", "status", "words"),
    [
        ([rank(0, [0], mpi_world=2), rank(1, [1], mpi_world=2)], "ok", "MPI joins them all"),
        ([rank(0, [0]), rank(1, [1])], "ok", "MPI itself was not asked"),
        ([rank(0, [0], world=1), rank(0, [1], world=1)], "failure", "believes to be alone"),
        ([rank(0, [0], mpi_world=1), rank(1, [1], mpi_world=1)], "failure", "MPI counts [1]"),
        ([rank(0, [0]), rank(1, [1], "other", 0)], "failure", "not on 1 nodes"),
    ],
)
def test_the_world(ranks: list[dict[str, Any]], status: str, words: str) -> None:
    check = binding._world(ranks, request(), {"command": ["mpirun", "-np", "2", "-x", "PATH"]})
    assert check.status == status
    assert words in check.message
    assert "under mpirun -np 2" in check.message
    assert "-x" not in check.message


def test_the_request_follows_the_options_or_the_cluster(tmp_path: Path) -> None:
    asked = binding.placement(patient(tmp_path, request=Request(2, 4, 2)))
    assert (asked.nodes, asked.ranks_per_node, asked.cores_per_rank, asked.ranks) == (2, 4, 2, 8)
    outside = binding.placement(patient(tmp_path, in_job=False))
    assert (outside.ranks_per_node, outside.cores_per_rank) == (2, 4)


def test_outside_a_job_nothing_is_started(tmp_path: Path) -> None:
    [check] = binding.check(patient(tmp_path, in_job=False))
    assert check.status == "note"
    assert "--job-script" in check.remedy


def test_a_launcher_that_starts_nothing_is_a_failure_with_its_command(tmp_path: Path) -> None:
    there = patient(tmp_path, mpi={"command": "/bin/false", "bind": "none"}, python="python3")
    [check] = binding.check(there)
    assert check.status == "failure"
    assert "0 of" in check.message
    assert "/bin/false -np" in check.remedy


@pytest.mark.parametrize(
    ("cpus", "text"), [([0, 1, 2, 5], "0-2,5"), ([3], "3"), ([], ""), ([9, 8, 1], "1,8-9"), ([0, 2, 4], "0,2,4")]
)
def test_spans(cpus: list[int], text: str) -> None:
    assert binding.spans(cpus) == text
