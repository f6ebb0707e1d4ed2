"""Clusters, placements and run specifications to render from."""

from __future__ import annotations

from typing import Any

from harness.model.axes import Axes, Point
from harness.model.cluster import Cluster, Mpi, NodeType, Storage
from harness.model.job import Placement, RunSpec

JOB_NAME = "htest0000r0a1"
NODE = NodeType(sockets=2, cores_per_socket=20, gpus=4, memory_bytes=384 * 1024**3)


def make_cluster(scheduler: str = "pbs", mpi: Mpi | None = None, **changes: Any) -> Cluster:
    storage = {"hpctmp": Storage(path="/hpctmp/data")}
    return Cluster(
        **{"name": "site", "scheduler": scheduler, "node": NODE, "storage": storage, "mpi": mpi or Mpi(), **changes}
    )


def make_placement(**changes: Any) -> Placement:
    base = {"cluster": "site", "nodes": 1, "ranks_per_node": 1, "cores_per_node": 10, "walltime_s": 5400}
    return Placement(**{**base, "data_path": "/hpctmp/data/mnist", **changes})


def make_spec(placement: Placement, campaign: str = "test", **axes: Any) -> RunSpec:
    chosen = Axes(
        **{
            "workload": "dcgan_mnist",
            "framework": "torch",
            "dataset": "digits:mnist",
            "cpu_cores": placement.cores_per_node,
            "ranks_per_node": placement.ranks_per_node,
            **axes,
        }
    )
    return RunSpec(
        campaign=campaign,
        point_id=Point(axes=chosen).id,
        repeat=0,
        attempt=1,
        axes=chosen,
        placement=placement,
        harness_version="0",
    )
