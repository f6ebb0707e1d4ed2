"""What Slurm says of its nodes and partitions: its real answers, and forms that other sites have."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.jobs.survey import slurm
from harness.jobs.survey.facts import NodeFacts, QueueFacts, SiteFacts, kinds

RECORDED = Path(__file__).parent / "recorded"
GIB = 1024**3


@pytest.fixture
def private() -> SiteFacts:
    """The answers of a Slurm 22.05 with four nodes of 2 × 8 cores and four GPUs."""
    answers = [(RECORDED / f"slurm-22.05-{what}.txt").read_text() for what in ("nodes", "partitions", "config")]
    return slurm.site(*answers)


def test_nodes_of_a_real_site(private: SiteFacts) -> None:
    assert [node.name for node in private.nodes] == ["node1", "node2", "node3", "node4"]
    assert private.nodes[0] == NodeFacts(
        "node1", 16, 2, 8, 1, memory_bytes=16000 * 1024**2, gpus=4, gpu_type="fake", queues=("workq", "short")
    )
    assert [len(group) for group in kinds(list(private.nodes))] == [4]


def test_partitions_of_a_real_site(private: SiteFacts) -> None:
    assert private.queues == (
        QueueFacts("workq", is_default=True, default_walltime_s=600, max_nodes=4, max_array_size=10001),
        QueueFacts("short", max_walltime_s=300, max_nodes=4, max_array_size=10001),
    )
    assert private.default_queue == "workq"
    assert (private.name, private.version) == ("private", "22.05.8")
    assert private.settings["AccountingStorageType"] == "accounting_storage/none"


def node_line(**fields: str) -> str:
    record = {"NodeName": "n1", "CPUTot": "80", "Sockets": "2", "CoresPerSocket": "20", "ThreadsPerCore": "2"}
    return " ".join(f"{key}={value}" for key, value in {**record, **fields}.items()) + "\n"


@pytest.mark.parametrize(
    ("gres", "count", "kind"),
    [
        ("(null)", 0, ""),
        ("gpu:4", 4, ""),
        ("gpu:v100:4(S:0-1)", 4, "v100"),
        ("gpu:a100:8(S:0,1),nvme:1", 8, "a100"),
        ("lustre:1,gpu:a100_3g.20gb:2", 2, "a100_3g.20gb"),
        ("gpu:a100:2(S:0),gpu:v100:2(S:1)", 4, ""),
        ("shard:8", 0, ""),
    ],
)
def test_gpus_of_a_node(gres: str, count: int, kind: str) -> None:
    [node] = slurm.site(node_line(Gres=gres), "", "").nodes
    assert (node.gpus, node.gpu_type) == (count, kind)


def test_cores_are_counted_apart_from_hardware_threads_and_kept_memory_is_not_ours() -> None:
    [node] = slurm.site(node_line(RealMemory="192000", MemSpecLimit="2000"), "", "").nodes
    assert (node.cpus, node.sockets, node.cores_per_socket, node.threads_per_core) == (80, 2, 20, 2)
    assert node.memory_bytes == 190000 * 1024**2


def test_a_reason_in_free_text_does_not_change_the_node() -> None:
    line = node_line(Gres="gpu:4", RealMemory="1000").rstrip() + " Reason=bad dimm, see RealMemory=5 Gres=gpu:1\n"
    [node] = slurm.site(line, "", "").nodes
    assert (node.gpus, node.memory_bytes) == (4, 1000 * 1024**2)


def test_limits_of_a_partition() -> None:
    line = (
        "PartitionName=gpu Default=NO DefaultTime=NONE MaxNodes=8 MaxTime=2-00:00:00 MinNodes=2 MaxCPUsPerNode=36 "
        "State=UP TotalNodes=100 MaxMemPerNode=65536\n"
        "PartitionName=old Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 State=DOWN TotalNodes=3\n"
    )
    gpu, old = slurm.site("", line, "").queues
    assert gpu == QueueFacts(
        "gpu",
        max_walltime_s=172800,
        min_nodes=2,
        max_nodes=8,
        max_cores_per_node=36,
        max_memory_bytes=64 * GIB,
    )
    assert (old.accepts, old.max_walltime_s, old.max_nodes, old.min_nodes) == (False, None, 3, None)


@pytest.mark.parametrize("text", ["", "slurm_load_node error: Unable to contact slurm controller\n", "NodeName\n=\n"])
def test_what_is_no_answer_gives_no_nodes(text: str) -> None:
    assert slurm.site(text, text, text).nodes == ()
