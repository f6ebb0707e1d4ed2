"""A point on a cluster: the request for it, or every reason why it cannot run there."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

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


class Needs(NamedTuple):
    """All that the placement of a point depends on: nothing else of its axes is looked at here."""

    nodes: int
    ranks_per_node: int
    cpu_cores: int
    gpus_per_rank: int
    storage: str
    dataset: str | None
    encoding: str
    pipeline: str | None


_needed = attrgetter(*Needs._fields)


def needs_of(axes: Axes) -> Needs:
    return Needs._make(_needed(axes))


class Site(NamedTuple):
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

    def asked_memory_bytes(self, axes: Axes | Needs) -> int | None:
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
    return place_needs(needs_of(axes), site)


def place_needs(needs: Needs, site: Site) -> Placement | list[Reason]:
    """As :func:`place`, for all points of these needs."""
    cluster = site.cluster
    reasons = [
        *(*_size(needs, site), *_gpu_share(needs, cluster), *_whole_nodes(needs, cluster)),
        *(*_queue(needs, site), *_storage(needs, cluster)),
    ]
    return reasons or _placement(needs, site)


def _placement(needs: Needs, site: Site) -> Placement:
    cluster = site.cluster
    storage = cluster.storage[needs.storage]
    source = cluster.storage[storage.stage_from] if storage.stage_from else None
    return Placement(
        cluster=cluster.name,
        queue=site.queue_name,
        account=cluster.account,
        project=cluster.project,
        nodes=needs.nodes,
        ranks_per_node=needs.ranks_per_node,
        cores_per_node=needs.cpu_cores,
        gpus_per_node=needs.gpus_per_rank * needs.ranks_per_node,
        memory_bytes=site.asked_memory_bytes(needs),
        walltime_s=site.asked_walltime_s,
        data_path=_data_path(storage.path, needs),
        data_scope=storage.scope,
        stage_from=_data_path(source.path, needs) if source and reads_data(needs.dataset, needs.pipeline) else None,
    )


def _data_path(storage_path: str, needs: Needs) -> str:
    if not needs.dataset:
        return storage_path
    return f"{storage_path.rstrip('/')}/{dataset_directory(needs.dataset, needs.encoding)}"


def _size(needs: Needs, site: Site) -> Iterator[Reason]:
    """What a node and the machine have."""
    cluster, node = site.cluster, site.cluster.node
    gpus = needs.gpus_per_rank * needs.ranks_per_node
    memory = site.asked_memory_bytes(needs)
    if needs.cpu_cores > node.cores:
        yield (
            "cores_per_node",
            f"needs {plural(needs.cpu_cores, 'core')} on a node; a node of {cluster.name} has {node.cores}",
        )
    if needs.cpu_cores % needs.ranks_per_node:
        yield (
            "ranks_indivisible",
            f"{plural(needs.cpu_cores, 'core')} cannot be shared evenly by {needs.ranks_per_node} ranks",
        )
    if needs.nodes > cluster.nodes:
        yield "nodes", f"needs {plural(needs.nodes, 'node')}; {cluster.name} gives a job {cluster.nodes} at most"
    if gpus > node.gpus:
        yield "gpus_per_node", f"needs {plural(gpus, 'GPU')} on a node; a node of {cluster.name} has {node.gpus}"
    if memory and node.memory_bytes and memory > node.memory_bytes:
        have = format_bytes(node.memory_bytes)
        yield "memory", f"needs {format_bytes(memory)} on a node; a node of {cluster.name} has {have}"


def _gpu_share(needs: Needs, cluster: Cluster) -> Iterator[Reason]:
    """Where requests are counted in GPUs, each brings its share of a node's cores, and nothing comes without one."""
    node, gpus = cluster.node, needs.gpus_per_rank * needs.ranks_per_node
    if cluster.directives.style != "by_gpu":
        return
    if not gpus:
        yield "gpus_needed", f"asks for no GPU; {cluster.name} counts requests in GPUs: set gpus_per_rank"
    elif node.gpus and needs.cpu_cores > gpus * (node.cores // node.gpus):
        share = plural(gpus * (node.cores // node.gpus), "core")
        yield (
            "gpu_share",
            f"needs {plural(needs.cpu_cores, 'core')}; {plural(gpus, 'GPU')} of {cluster.name} bring {share}",
        )


def _whole_nodes(needs: Needs, cluster: Cluster) -> Iterator[Reason]:
    """Where cores or GPUs are asked for as a sum, several nodes come for certain only as whole ones."""
    node, gpus, style = cluster.node, needs.gpus_per_rank * needs.ranks_per_node, cluster.directives.style
    if needs.nodes == 1:
        return
    if style == "plain" and needs.cpu_cores != node.cores:
        asked, whole = plural(needs.cpu_cores, "core"), plural(node.cores, "core")
    elif style == "by_gpu" and gpus != node.gpus:
        asked, whole = plural(gpus, "GPU"), plural(node.gpus, "GPU")
    else:
        return
    yield (
        "whole_nodes",
        f"needs {asked} on each of {needs.nodes} nodes; {cluster.name} is asked for their sum, which may come on "
        f"fewer nodes: use all {whole} of each",
    )


def _queue(needs: Needs, site: Site) -> Iterator[Reason]:
    """What the queue allows; the reason names the queues that would take the point."""
    reasons = list(queue_limits(needs, site))
    if not reasons:
        return
    others = [
        name
        for name in site.cluster.queues
        if name != site.queue_name
        and not list(queue_limits(needs, Site(site.cluster, name, site.walltime_s, site.memory_bytes)))
    ]
    hint = f"; queue {' or '.join(others)} would take it" if others else ""
    for code, reason in reasons:
        yield code, reason + hint


def queue_limits(needs: Needs, site: Site) -> Iterator[Reason]:
    """The limits of the site's queue that a point breaks."""
    queue, name = site.queue, site.queue_name
    gpus = needs.gpus_per_rank * needs.ranks_per_node
    memory = site.asked_memory_bytes(needs)
    walltime_s = site.asked_walltime_s
    if needs.nodes < queue.min_nodes:
        yield "queue_min_nodes", f"needs {plural(needs.nodes, 'node')}; queue {name} takes {queue.min_nodes} at least"
    if queue.max_nodes is not None and needs.nodes > queue.max_nodes:
        yield "queue_max_nodes", f"needs {plural(needs.nodes, 'node')}; queue {name} gives {queue.max_nodes} at most"
    if queue.max_cores_per_node is not None and needs.cpu_cores > queue.max_cores_per_node:
        yield (
            "queue_cores",
            f"needs {plural(needs.cpu_cores, 'core')} on a node; queue {name} gives {queue.max_cores_per_node}",
        )
    if queue.max_gpus_per_node is not None and gpus > queue.max_gpus_per_node:
        yield "queue_gpus", f"needs {plural(gpus, 'GPU')} on a node; queue {name} gives {queue.max_gpus_per_node}"
    if queue.cores_per_gpu is not None and needs.cpu_cores != queue.cores_per_gpu * gpus:
        asks = f"asks for {plural(needs.cpu_cores, 'core')} with {plural(gpus, 'GPU')}"
        yield "cores_per_gpu", f"{asks}; queue {name} takes exactly {queue.cores_per_gpu} cores for each GPU"
    if memory and queue.max_memory_bytes is not None and memory > queue.max_memory_bytes:
        have = format_bytes(queue.max_memory_bytes)
        yield "queue_memory", f"needs {format_bytes(memory)} on a node; queue {name} gives {have}"
    if queue.max_walltime_s is not None and walltime_s > queue.max_walltime_s:
        have = format_duration(queue.max_walltime_s)
        yield "walltime", f"asks for {format_duration(walltime_s)}; queue {name} allows {have}"


def _storage(needs: Needs, cluster: Cluster) -> Iterator[Reason]:
    if needs.storage not in cluster.storage:
        choices = nearest(needs.storage, list(cluster.storage))
        yield "storage", f"cluster {cluster.name} has no storage {needs.storage!r}; {choices}"


def plural(count: int, word: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
