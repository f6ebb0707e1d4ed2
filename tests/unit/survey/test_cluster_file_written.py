"""The cluster file that ``harness init`` writes: valid whatever a site's words are, with what is unknown marked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.config.cluster_file import parse_cluster
from harness.jobs.survey import pbs, slurm
from harness.jobs.survey.describe import cluster_file, marks, word
from harness.jobs.survey.facts import NodeFacts, QueueFacts, SiteFacts
from harness.jobs.survey.look import Surroundings
from harness.jobs.survey.machine import Processors
from harness.jobs.survey.mpi import MpiVersion
from harness.model.cluster import Cluster

RECORDED = Path(__file__).parent / "recorded"
GIB = 1024**3


def surroundings(site: SiteFacts | None, **more: object) -> Surroundings:
    facts: dict[str, object] = {"processors": Processors("EPYC", 2, 16, 1), "python": "/opt/py/bin/python"}
    return Surroundings(host="login1", site=site, **{**facts, **more})  # type: ignore[arg-type]


def cluster_of(text: str) -> Cluster:
    return parse_cluster(text, Path("/project"))


def real_slurm() -> SiteFacts:
    answers = [(RECORDED / f"slurm-22.05-{what}.txt").read_text() for what in ("nodes", "partitions", "config")]
    return slurm.site(*answers)


def test_a_real_slurm_becomes_a_cluster() -> None:
    launcher = MpiVersion("openmpi", "4.1.4")
    found = surroundings(real_slurm(), launcher=launcher, shared_place=("/lustre/me", "$SCRATCH"))
    cluster = cluster_of(cluster_file("mine", found))
    assert (cluster.name, cluster.scheduler, cluster.nodes, cluster.queue) == ("mine", "slurm", 4, "workq")
    assert (cluster.node.sockets, cluster.node.cores_per_socket, cluster.node.gpus) == (2, 8, 4)
    assert (cluster.node.gpu_model, cluster.node.memory_bytes) == ("fake", 16000 * 1024**2)
    assert cluster.queues["short"].max_walltime_s == 300
    assert cluster.queues["workq"].default_walltime_s == 600
    assert cluster.default_memory_bytes == 8000 * 1024**2
    assert cluster.storage["hpctmp"].path == "/lustre/me/dl-batch-harness"
    assert cluster.storage["scratch"].stage_from == "hpctmp"
    assert (cluster.mpi.flavour, cluster.python) == ("openmpi4", "/opt/py/bin/python")


def test_what_pbs_does_not_tell_is_marked() -> None:
    nodes = "n1\n     resources_available.ncpus = 48\n     resources_available.ngpus = 4\n"
    queues = "Queue: gpu\n    enabled = True\n    started = True\n"
    site = pbs.site("Server: s\n    pbs_version = 19.0.0\n    default_queue = gpu\n", queues, nodes)
    text = cluster_file("mine", surroundings(site))
    cluster = cluster_of(text)
    assert (cluster.node.cores, cluster.node.gpus, cluster.node.memory_bytes) == (48, 4, None)
    assert not cluster.directives.array_throttle  # older than the throttle
    remarks = " | ".join(remark for _, remark in marks(text))
    for unknown in ("not of sockets", "hardware threads", "memory:", "-P, at some sites", "no mpirun in PATH"):
        assert unknown in remarks
    lines = text.splitlines()
    assert all("# ?" in lines[number - 1] for number, _ in marks(text))


def test_torque_asks_by_nodes() -> None:
    site = SiteFacts("torque", "head", "6.1.2", (NodeFacts("n1", 16, 2, 8),), (QueueFacts("batch", is_default=True),))
    cluster = cluster_of(cluster_file("mine", surroundings(site)))
    assert (cluster.scheduler, cluster.directives.style, cluster.queue) == ("torque", "nodes", "batch")


def test_the_most_frequent_kind_of_node_of_the_queue_is_described_and_the_others_are_named() -> None:
    gpus = [NodeFacts(f"g{n}", 40, 2, 20, 1, (380 + n) * GIB, 4, "v100", ("gpu",)) for n in range(3)]
    small = NodeFacts("g9", 32, 2, 16, 1, 190 * GIB, 2, "p100", ("gpu",))
    cpus = [NodeFacts(f"c{n}", 64, 2, 32, 1, 256 * GIB, queues=("cpu",)) for n in range(9)]
    queues = (QueueFacts("cpu", is_default=True, max_nodes=2), QueueFacts("gpu"), QueueFacts("shut", accepts=False))
    site = SiteFacts("slurm", "big", "23.11", (*gpus, small, *cpus), queues)
    text = cluster_file("mine", surroundings(site), "gpu")
    cluster = cluster_of(text)
    assert (cluster.queue, cluster.nodes, cluster.node.gpu_model) == ("gpu", 4, "v100")
    assert cluster.node.memory_bytes == 380 * GIB  # the least of the three
    assert "others: 1 with 32 CPUs and 2 GPUs (p100): g9" in text
    assert any("land on any of them" in remark for _, remark in marks(text))
    assert set(cluster.queues) == {"cpu", "gpu"}
    assert cluster_of(cluster_file("mine", surroundings(site))).node.cores == 64


def test_without_a_scheduler_the_local_engine() -> None:
    text = cluster_file("box", surroundings(None, launcher=MpiVersion("openmpi", "5.0.1")))
    cluster = cluster_of(text)
    assert (cluster.scheduler, cluster.mpi.bind, cluster.mpi.flavour) == ("local", "none", "openmpi5")
    assert "sbatch" not in text, "--scheduler local serves where there is one, too"
    assert cluster.storage["hpctmp"].path == "/project/results/data/hpctmp"
    assert marks(text) == []


def test_a_site_that_tells_nothing_still_gives_a_valid_file() -> None:
    text = cluster_file("mine", surroundings(SiteFacts("slurm"), processors=None))
    assert cluster_of(text).queue is None
    remarks = " | ".join(remark for _, remark in marks(text))
    assert "tells of no nodes" in remarks
    assert "no default queue" in remarks


@pytest.mark.parametrize("text", ["no", "1e3", "0x1", "a: b", "#x", "null", "", "ä b", '"', "12:00:00", "{a}", "~"])
def test_words_that_yaml_would_misread_are_quoted(text: str) -> None:
    assert word(text).startswith('"')


hostile = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=12
)


@settings(max_examples=60, deadline=None)
@given(queue=hostile, gpu=hostile, node=hostile, place=hostile, host=hostile)
def test_no_word_of_a_site_breaks_the_file(queue: str, gpu: str, node: str, place: str, host: str) -> None:
    site = SiteFacts(
        "slurm",
        "x",
        "1",
        (NodeFacts(node, 8, 1, 8, gpus=1, gpu_type=gpu, queues=(queue,)),),
        (QueueFacts(queue, is_default=True),),
    )
    found = surroundings(site, shared_place=(f"/{place}", "there"), modules=(place,), python=f"/{place}/python")
    found = Surroundings(**{**vars(found), "host": host})
    cluster = cluster_of(cluster_file("mine", found))
    assert cluster.queue == queue
    assert cluster.node.gpu_model == gpu
    assert cluster.python == f"/{place}/python"
