"""Placement: the request for a point, and every reason a site or the catalog can have against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.config.cluster_file import parse_cluster
from harness.errors import UserError
from harness.model.axes import Axes
from harness.model.cluster import Cluster, Directives
from harness.model.job import Placement
from harness.plan.defaults import fill
from harness.plan.fit import misfits
from harness.plan.place import Site, choose_queue, place

GIB = 1024**3
SITE = parse_cluster(
    """\
name: site
scheduler: pbs
nodes: 8
node: {sockets: 2, cores_per_socket: 10, gpus: 4, memory: 100gb}
queue: small
queues:
  small: {max_nodes: 2, max_walltime: 1h, max_cores_per_node: 16, max_gpus_per_node: 2, max_memory: 80gb}
  large: {min_nodes: 4, max_walltime: 24h, default_walltime: 2h}
  volta: {cores_per_gpu: 5}
project: p1
account: a1
memory_per_core: 4gb
storage:
  hpctmp: {path: /hpctmp/$USER}
  scratch: {path: /scratch/, scope: node, stage_from: hpctmp}
""",
    Path("/"),
)


def axes(**values: Any) -> Axes:
    return Axes(**fill({"workload": "resnet20_cifar10", **values}))


def codes(point: Axes, queue: str | None = "small", cluster: Cluster = SITE, **limits: int) -> list[str]:
    placed = place(point, Site(cluster, queue, **limits))
    return [code for code, _ in placed] if isinstance(placed, list) else []


def test_the_request_in_full() -> None:
    point = axes(cpu_cores=10, ranks_per_node=2, gpus_per_rank=1, nodes=2, storage="scratch")
    assert place(point, Site(SITE, "small", walltime_s=1800, memory_bytes=5 * GIB)) == Placement(
        cluster="site",
        queue="small",
        account="a1",
        project="p1",
        nodes=2,
        ranks_per_node=2,
        cores_per_node=10,
        gpus_per_node=2,
        memory_bytes=5 * GIB,
        walltime_s=1800,
        data_path="/scratch/cifar10",
        data_scope="node",
        stage_from="/hpctmp/$USER/cifar10",
    )


def test_the_data_sets_own_directory() -> None:
    placed = place(axes(dataset="photos:cifar10"), Site(SITE, "small"))
    assert isinstance(placed, Placement)
    assert (placed.data_path, placed.data_scope, placed.stage_from) == ("/hpctmp/$USER/photos-cifar10", "shared", None)


def test_without_a_data_set_the_storage_itself_and_nothing_staged() -> None:
    placed = place(axes(workload="replay", storage="scratch"), Site(SITE, "small"))
    assert isinstance(placed, Placement)
    assert (placed.data_path, placed.stage_from) == ("/scratch/", None)


@pytest.mark.parametrize(
    ("queue", "asked_s", "walltime_s"),
    [("small", 600, 600), ("small", None, 3600), ("large", None, 7200), ("volta", None, 3600), (None, None, 3600)],
)
def test_the_time_limit(queue: str | None, asked_s: int | None, walltime_s: int) -> None:
    assert Site(SITE, queue, walltime_s=asked_s).asked_walltime_s == walltime_s


def test_a_queue_shorter_than_the_usual_hour_sets_the_limit() -> None:
    short = SITE.model_copy(update={"queues": {"q": SITE.queues["small"].model_copy(update={"max_walltime_s": 600})}})
    assert Site(short, "q").asked_walltime_s == 600


def test_the_memory_of_a_point() -> None:
    site = Site(SITE, "small")
    assert site.asked_memory_bytes(axes(cpu_cores=2)) == 8 * GIB
    assert site.asked_memory_bytes(axes(cpu_cores=16)) == 64 * GIB
    assert Site(SITE, "volta").asked_memory_bytes(axes(cpu_cores=20)) == 80 * GIB
    per_node = SITE.model_copy(update={"memory_per_core_bytes": None, "default_memory_bytes": 500 * GIB})
    # a default is cut to what there is; a wish is not, it is refused
    assert Site(per_node, "volta").asked_memory_bytes(axes()) == 100 * GIB
    assert Site(per_node, "small").asked_memory_bytes(axes()) == 80 * GIB
    bare = per_node.model_copy(update={"default_memory_bytes": None})
    assert Site(bare, "small").asked_memory_bytes(axes()) is None


@pytest.mark.parametrize(
    ("values", "queue", "expected"),
    [
        ({"cpu_cores": 16}, "small", []),
        ({"cpu_cores": 17}, "small", ["queue_cores"]),
        ({"cpu_cores": 21}, "small", ["cores_per_node", "queue_cores"]),
        ({"cpu_cores": 3, "ranks_per_node": 2}, "small", ["ranks_indivisible"]),
        ({"nodes": 2}, "small", []),
        ({"nodes": 3}, "small", ["queue_max_nodes"]),
        ({"nodes": 9}, "large", ["nodes"]),
        ({"nodes": 1}, "large", ["queue_min_nodes"]),
        ({"gpus_per_rank": 2}, "small", []),
        ({"gpus_per_rank": 3}, "small", ["queue_gpus"]),
        ({"cpu_cores": 2, "ranks_per_node": 2, "gpus_per_rank": 3}, None, ["gpus_per_node"]),
        ({"cpu_cores": 10, "ranks_per_node": 2, "gpus_per_rank": 1}, "volta", []),
        ({"cpu_cores": 9, "gpus_per_rank": 2}, "volta", ["cores_per_gpu"]),
        ({"storage": "lustre"}, "small", ["storage"]),
        ({"storage": "lustre", "nodes": 9}, "small", ["nodes", "queue_max_nodes", "storage"]),
    ],
)
def test_what_a_site_cannot_run(values: dict[str, Any], queue: str | None, expected: list[str]) -> None:
    assert codes(axes(**values), queue) == expected


def test_limits_of_time_and_memory() -> None:
    assert codes(axes(), walltime_s=3600) == []
    assert codes(axes(), walltime_s=3601) == ["walltime"]
    assert codes(axes(), memory_bytes=80 * GIB) == []
    assert codes(axes(), memory_bytes=80 * GIB + 1) == ["queue_memory"]
    assert codes(axes(), "volta", memory_bytes=101 * GIB) == ["memory"] + ["cores_per_gpu"]


def test_a_site_that_counts_in_gpus() -> None:
    by_gpu = SITE.model_copy(update={"directives": Directives(style="by_gpu")})
    assert codes(axes(gpus_per_rank=1, cpu_cores=5), None, by_gpu) == []
    assert codes(axes(gpus_per_rank=1, cpu_cores=6), None, by_gpu) == ["gpu_share"]
    assert codes(axes(gpus_per_rank=0), None, by_gpu) == ["gpus_needed"]


def test_sums_come_as_several_nodes_only_where_those_are_whole() -> None:
    plain = SITE.model_copy(update={"directives": Directives(style="plain")})
    by_gpu = SITE.model_copy(update={"directives": Directives(style="by_gpu")})
    cores, gpus = SITE.node.cores, SITE.node.gpus
    assert codes(axes(nodes=2, cpu_cores=cores // 2), None, plain) == ["whole_nodes"]
    assert codes(axes(nodes=2, cpu_cores=cores), None, plain) == []
    assert codes(axes(nodes=1, cpu_cores=cores // 2), None, plain) == []
    assert codes(axes(nodes=2, gpus_per_rank=1, cpu_cores=cores // gpus), None, by_gpu) == ["whole_nodes"]
    assert codes(axes(nodes=2, gpus_per_rank=gpus, cpu_cores=cores), None, by_gpu) == []
    assert codes(axes(nodes=2, cpu_cores=cores // 2), None) == []


def reason(point: Axes, queue: str | None = "small", **limits: int) -> str:
    placed = place(point, Site(SITE, queue, **limits))
    assert isinstance(placed, list)
    return "; ".join(text for _, text in placed)


def test_reasons_name_numbers_and_a_way_out() -> None:
    assert reason(axes(nodes=4)) == "needs 4 nodes; queue small gives 2 at most; queue large would take it"
    assert reason(axes(cpu_cores=24), None) == "needs 24 cores on a node; a node of site has 20"
    assert reason(axes(storage="scrach")).endswith("did you mean 'scratch'? valid: hpctmp, scratch")
    assert reason(axes(), walltime_s=7200) == "asks for 02:00:00; queue small allows 01:00:00"


def test_the_queue() -> None:
    assert choose_queue(SITE, None) == "small"
    assert choose_queue(SITE, "large") == "large"
    with pytest.raises(UserError, match="cluster site has no queue 'larg'; did you mean 'large'"):
        choose_queue(SITE, "larg")
    free = SITE.model_copy(update={"queues": {}, "queue": None})
    assert choose_queue(free, None) is None
    assert choose_queue(free, "anything") == "anything"


@pytest.mark.parametrize(
    ("values", "code", "message"),
    [
        ({"framework": "none"}, "framework", "has no none version; it has tensorflow or torch"),
        ({"workload": "replay", "framework": "torch"}, "framework", "workload replay has no torch version"),
        ({"pipeline": "scripted"}, "pipeline", "pipeline scripted has no tensorflow version"),
        ({"dataset": "mnist"}, "dataset", "samples of mnist are 28×28×1; workload resnet20_cifar10 takes 32×32×3"),
        ({"dataset": "digits:cifar10"}, "dataset", "there is no digits cifar10; it can be real, photos, synthetic"),
        ({"model": "resnet50"}, "model", "resnet20_cifar10 has no model resnet50; it has one model and takes no name"),
        (
            {"workload": "resnet_imagenet", "model": "resnet-34"},
            "model",
            "has no model resnet-34; did you mean 'resnet34'? valid: resnet34, resnet50, densenet121",
        ),
        (
            {"workload": "resnet_imagenet", "dataset": "cifar10"},
            "dataset",
            "resnet_imagenet does not train on cifar10; it takes imagenet, caltech256, chestxray14",
        ),
        ({"workload": "lenet_mnist", "dataset": "cifar10"}, "dataset", "samples of cifar10 are 32×32×3"),
        ({"workload": "replay", "dataset": "mnist"}, "dataset", "workload replay reads no data"),
        ({"workload": "replay", "multiprocessing": True}, "unused_axis", "does not use multiprocessing"),
        ({"echo": 2}, "unused_axis", "pipeline memory does not use echo, which is 2"),
        ({"encoding": "npy"}, "encoding", "pipeline memory does not read cifar10 as npy; it reads native"),
        (
            {"workload": "resnet_imagenet", "pipeline": "tf_memory"},
            "encoding",
            "pipeline tf_memory holds imagenet resized ahead: convert it, and set encoding: npy",
        ),
        ({"options": {"produce_s": 0.5}}, "option", "has the option produce_s; set it with `when`"),
    ],
)
def test_what_does_not_fit_together(values: dict[str, Any], code: str, message: str) -> None:
    found = misfits(axes(**values))
    assert code in [found_code for found_code, _ in found]
    assert message in "; ".join(text for _, text in found)


def test_what_fits() -> None:
    assert misfits(axes()) == []
    assert misfits(axes(framework="torch", dataset="synthetic:cifar10", workers=4, prefetch=2)) == []
    assert misfits(axes(workload="replay", workers=4, options={"produce_s": 0.5})) == []
    assert misfits(axes(pipeline="tf_memory")) == []
    assert misfits(axes(workload="resnet_imagenet", pipeline="tf_memory", encoding="npy")) == []
