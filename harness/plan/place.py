"""A point on a cluster: the request for it, or every reason why it cannot run there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.catalog import dataset_directory, reads_data
from harness.errors import UserError, nearest
from harness.model.axes import Axes
from harness.model.cluster import Cluster, Queue
from harness.model.job import Placement
from harness.units import format_bytes, format_duration

DEFAULT_WALLTIME_S = 3600
_NO_LIMITS = Queue.model_construct()

#: (code, reason): the code is stable, the reason is for people
Reason = tuple[str, str]


@dataclass(frozen=True)
class Site:
    """A cluster with the queue chosen and the limits asked for; ``walltime_s`` and ``memory_bytes`` may be unset."""

    cluster: Cluster
    queue_name: str | None
    walltime_s: int | None = None
    memory_bytes: int | None = None

    @property
    def queue(self) -> Queue:
        return self.cluster.queues.get(self.queue_name or "", _NO_LIMITS)

    @property
    def asked_walltime_s(self) -> int:
        """The time limit of each run: the sweep's, else the queue's default, else an hour or the queue's maximum."""
        if self.walltime_s is not None:
            return self.walltime_s
        limit = self.queue.max_walltime_s or DEFAULT_WALLTIME_S
        return self.queue.default_walltime_s or min(DEFAULT_WALLTIME_S, limit)

    def asked_memory_bytes(self, axes: Axes) -> int | None:
        """The sweep's memory, else the cluster's per core or per node, as far as a node has it."""
        if self.memory_bytes is not None:
            return self.memory_bytes
        per_core = self.cluster.memory_per_core_bytes
        asked = per_core * axes.cpu_cores if per_core else self.cluster.default_memory_bytes
        limits = [n for n in (asked, self.cluster.node.memory_bytes, self.queue.max_memory_bytes) if n]
        return min(limits) if asked else None


def choose_queue(cluster: Cluster, queue: str | None) -> str | None:
    """The queue named, else the cluster's own.

    Raises:
        UserError: the cluster's file describes its queues, and this is none of them.
    """
    name = queue or cluster.queue
    if name and cluster.queues and name not in cluster.queues:
        raise UserError(f"cluster {cluster.name} has no queue {name!r}; {nearest(name, list(cluster.queues))}")
    return name


def place(axes: Axes, site: Site) -> Placement | list[Reason]:
    """The request for a point, or all reasons why the site cannot run it."""
    reasons = [*_size(axes, site), *_gpu_share(axes, site.cluster), *_queue(axes, site), *_storage(axes, site.cluster)]
    return reasons or _placement(axes, site)


def _placement(axes: Axes, site: Site) -> Placement:
    cluster = site.cluster
    storage = cluster.storage[axes.storage]
    source = cluster.storage[storage.stage_from] if storage.stage_from else None
    return Placement(
        cluster=cluster.name,
        queue=site.queue_name,
        account=cluster.account,
        project=cluster.project,
        nodes=axes.nodes,
        ranks_per_node=axes.ranks_per_node,
        cores_per_node=axes.cpu_cores,
        gpus_per_node=axes.gpus_per_rank * axes.ranks_per_node,
        memory_bytes=site.asked_memory_bytes(axes),
        walltime_s=site.asked_walltime_s,
        data_path=_data_path(storage.path, axes),
        data_scope=storage.scope,
        stage_from=_data_path(source.path, axes) if source and reads_data(axes.dataset, axes.pipeline) else None,
    )


def _data_path(storage_path: str, axes: Axes) -> str:
    if not axes.dataset:
        return storage_path
    return f"{storage_path.rstrip('/')}/{dataset_directory(axes.dataset, axes.encoding)}"


def _size(axes: Axes, site: Site) -> Iterator[Reason]:
    """What a node and the machine have."""
    cluster, node = site.cluster, site.cluster.node
    gpus = axes.gpus_per_rank * axes.ranks_per_node
    memory = site.asked_memory_bytes(axes)
    if axes.cpu_cores > node.cores:
        yield (
            "cores_per_node",
            f"needs {plural(axes.cpu_cores, 'core')} on a node; a node of {cluster.name} has {node.cores}",
        )
    if axes.cpu_cores % axes.ranks_per_node:
        yield (
            "ranks_indivisible",
            f"{plural(axes.cpu_cores, 'core')} cannot be shared evenly by {axes.ranks_per_node} ranks",
        )
    if axes.nodes > cluster.nodes:
        yield "nodes", f"needs {plural(axes.nodes, 'node')}; {cluster.name} gives a job {cluster.nodes} at most"
    if gpus > node.gpus:
        yield "gpus_per_node", f"needs {plural(gpus, 'GPU')} on a node; a node of {cluster.name} has {node.gpus}"
    if memory and node.memory_bytes and memory > node.memory_bytes:
        have = format_bytes(node.memory_bytes)
        yield "memory", f"needs {format_bytes(memory)} on a node; a node of {cluster.name} has {have}"


def _gpu_share(axes: Axes, cluster: Cluster) -> Iterator[Reason]:
    """Where requests are counted in GPUs, each brings its share of a node's cores, and nothing comes without one."""
    node, gpus = cluster.node, axes.gpus_per_rank * axes.ranks_per_node
    if cluster.directives.style != "by_gpu":
        return
    if not gpus:
        yield "gpus_needed", f"asks for no GPU; {cluster.name} counts requests in GPUs: set gpus_per_rank"
    elif node.gpus and axes.cpu_cores > gpus * (node.cores // node.gpus):
        share = plural(gpus * (node.cores // node.gpus), "core")
        yield (
            "gpu_share",
            f"needs {plural(axes.cpu_cores, 'core')}; {plural(gpus, 'GPU')} of {cluster.name} bring {share}",
        )


def _queue(axes: Axes, site: Site) -> Iterator[Reason]:
    """What the queue allows; the reason names the queues that would take the point."""
    reasons = list(queue_limits(axes, site))
    if not reasons:
        return
    others = [
        name
        for name in site.cluster.queues
        if name != site.queue_name
        and not list(queue_limits(axes, Site(site.cluster, name, site.walltime_s, site.memory_bytes)))
    ]
    hint = f"; queue {' or '.join(others)} would take it" if others else ""
    for code, reason in reasons:
        yield code, reason + hint


def queue_limits(axes: Axes, site: Site) -> Iterator[Reason]:
    """The limits of the site's queue that a point breaks."""
    queue, name = site.queue, site.queue_name
    gpus = axes.gpus_per_rank * axes.ranks_per_node
    memory = site.asked_memory_bytes(axes)
    walltime_s = site.asked_walltime_s
    if axes.nodes < queue.min_nodes:
        yield "queue_min_nodes", f"needs {plural(axes.nodes, 'node')}; queue {name} takes {queue.min_nodes} at least"
    if queue.max_nodes is not None and axes.nodes > queue.max_nodes:
        yield "queue_max_nodes", f"needs {plural(axes.nodes, 'node')}; queue {name} gives {queue.max_nodes} at most"
    if queue.max_cores_per_node is not None and axes.cpu_cores > queue.max_cores_per_node:
        yield (
            "queue_cores",
            f"needs {plural(axes.cpu_cores, 'core')} on a node; queue {name} gives {queue.max_cores_per_node}",
        )
    if queue.max_gpus_per_node is not None and gpus > queue.max_gpus_per_node:
        yield "queue_gpus", f"needs {plural(gpus, 'GPU')} on a node; queue {name} gives {queue.max_gpus_per_node}"
    if queue.cores_per_gpu is not None and axes.cpu_cores != queue.cores_per_gpu * gpus:
        share = f"{queue.cores_per_gpu} cores for each GPU"
        yield (
            "cores_per_gpu",
            f"asks for {plural(axes.cpu_cores, 'core')} with {plural(gpus, 'GPU')}; queue {name} takes exactly {share}",
        )
    if memory and queue.max_memory_bytes is not None and memory > queue.max_memory_bytes:
        have = format_bytes(queue.max_memory_bytes)
        yield "queue_memory", f"needs {format_bytes(memory)} on a node; queue {name} gives {have}"
    if queue.max_walltime_s is not None and walltime_s > queue.max_walltime_s:
        have = format_duration(queue.max_walltime_s)
        yield "walltime", f"asks for {format_duration(walltime_s)}; queue {name} allows {have}"


def _storage(axes: Axes, cluster: Cluster) -> Iterator[Reason]:
    if axes.storage not in cluster.storage:
        choices = nearest(axes.storage, list(cluster.storage))
        yield "storage", f"cluster {cluster.name} has no storage {axes.storage!r}; {choices}"


def plural(count: int, word: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
