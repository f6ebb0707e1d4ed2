"""What a scheduler tells of its site. None and empty texts mean that it does not say."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from harness.model.cluster import SchedulerName


@dataclass(frozen=True)
class NodeFacts:
    """One node. ``cpus`` is what the scheduler counts: cores or hardware threads, as the site decided."""

    name: str
    cpus: int
    sockets: int | None = None
    cores_per_socket: int | None = None
    threads_per_core: int | None = None
    memory_bytes: int | None = None
    gpus: int = 0
    gpu_type: str = ""
    queues: tuple[str, ...] = ()
    """Queues that use the node; empty: those that name no nodes of their own."""

    @property
    def kind(self) -> tuple[int, int | None, int | None, int, str]:
        """What makes two nodes alike for a benchmark; memory may differ by what the firmware keeps."""
        return self.cpus, self.sockets, self.cores_per_socket, self.gpus, self.gpu_type


@dataclass(frozen=True)
class QueueFacts:
    """One queue or partition."""

    name: str
    is_default: bool = False
    accepts: bool = True
    max_walltime_s: int | None = None
    default_walltime_s: int | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    max_cores_per_node: int | None = None
    max_memory_bytes: int | None = None
    max_queued_jobs: int | None = None
    max_array_size: int | None = None
    routes_to: tuple[str, ...] = ()


@dataclass(frozen=True)
class SiteFacts:
    """A whole site. ``settings`` are the scheduler's own words for what ``harness doctor`` looks at."""

    scheduler: SchedulerName
    name: str = ""
    version: str = ""
    nodes: tuple[NodeFacts, ...] = ()
    queues: tuple[QueueFacts, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)

    def queue(self, name: str) -> QueueFacts | None:
        return next((queue for queue in self.queues if queue.name == name), None)

    @property
    def default_queue(self) -> str | None:
        return next((queue.name for queue in self.queues if queue.is_default), None)

    def nodes_of(self, queue: str | None) -> list[NodeFacts]:
        """The nodes that jobs of a queue may get: its own, else those that belong to no queue in particular.

        A queue that routes jobs on has the nodes of the queues it feeds.
        """
        facts = self.queue(queue) if queue else None
        names = {queue, *(facts.routes_to if facts else ())}
        own = [node for node in self.nodes if names & set(node.queues)]
        return own or [node for node in self.nodes if not node.queues] or list(self.nodes)


def kinds(nodes: list[NodeFacts]) -> list[list[NodeFacts]]:
    """Nodes grouped by kind, the most frequent kind first."""
    counted = Counter(node.kind for node in nodes)
    return [[node for node in nodes if node.kind == kind] for kind, _ in counted.most_common()]


#: a scheduler's commands by which it is recognised, and those that the harness needs
COMMANDS: dict[SchedulerName, tuple[str, ...]] = {
    "slurm": ("sbatch", "squeue", "scancel", "scontrol", "sinfo"),
    "pbs": ("qsub", "qstat", "qdel"),
    "torque": ("qsub", "qstat", "qdel"),
    "local": (),
}
Batch = Literal["slurm", "pbs", "torque"]
