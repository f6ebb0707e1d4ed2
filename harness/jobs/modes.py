"""How many tasks become how many jobs: one each, arrays, or packs; chosen by rule, and said in words."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from harness.errors import UserError
from harness.jobs.groups import PACK_OVERHEAD_S, resources
from harness.jobs.submission import Batch, Kind
from harness.model.campaign import Campaign, Task
from harness.model.cluster import Cluster, Queue
from harness.model.job import Placement
from harness.units import format_duration

MODES = ("auto", "single", "array", "pack")
#: fewer tasks than this are submitted one by one: nothing is saved, and each has a job of its own to look at
FEW = 10
#: walltime of a run that a usual wait in a queue outlasts
SHORT_S = 300
#: a queue that holds so many times fewer jobs than there are tasks
TIGHT = 4
#: elements of an array where the site names no limit; Slurm's MaxArraySize is 1001 by default (slurm.conf(5))
ARRAY_SIZE = 1000
#: walltime of a pack where the queue names no limit
PACK_S = 12 * 3600
#: a pack with fewer tasks gets no extra run as a canary
CANARY_TASKS = 4


@dataclass(frozen=True)
class How:
    """What the user wishes of submissions. ``jobs``: of this campaign at a time; ``max_queued``: of the user in all;
    ``rate_per_s``: submissions a second. None: what suits the cluster."""

    mode: str = "auto"
    jobs: int | None = None
    max_queued: int | None = None
    rate_per_s: float | None = None


@dataclass(frozen=True)
class Plan:
    """Batches in the order of their submission, one scheduler call each, and why they are such."""

    batches: tuple[Batch, ...]
    why: str

    @property
    def words(self) -> str:
        count = {kind: sum(batch.kind == kind for batch in self.batches) for kind in ("array", "pack", "single")}
        names = {"array": "array", "pack": "pack", "single": "single job"}
        parts = [f"{n} {names[kind]}{'s' if n > 1 else ''}" for kind, n in count.items() if n]
        calls, extra = len(self.batches), sum(batch.extra for batch in self.batches)
        added = [f"{extra} canary run{'s' if extra > 1 else ''} added"] if extra else []
        return ", ".join([" and ".join(parts), *added, f"{calls} submission{'s' if calls > 1 else ''}", self.why])


def queue_of(cluster: Cluster, placement: Placement) -> Queue:
    return cluster.queues.get(placement.queue or cluster.queue or "", Queue())


def quota_of(cluster: Cluster, how: How, placements: Collection[Placement]) -> int | None:
    """Jobs that the user may have queued or running in all, the least of the queues' limits; None: none known."""
    limits = {queue_of(cluster, placement).max_queued_jobs for placement in placements} - {None}
    return how.max_queued or min((limit for limit in limits if limit), default=None)


def throttle_of(cluster: Cluster, how: How) -> int | None:
    """Elements of an array that may run at once, where the user limits them and the site understands it."""
    return how.jobs if cluster.directives.array_throttle else None


def plan_batches(campaign: Campaign, cluster: Cluster, tasks: Sequence[Task], how: How, seed: str) -> Plan:
    """The batches of ``tasks``.

    Args:
        seed: decides the order within packs; the same for the same text.

    Raises:
        UserError: the wished mode does not exist on this cluster.
    """
    placements = {task: campaign.points[task.point_id].placement for task in tasks}
    kind, why = _chosen(cluster, list(placements.values()), how)
    groups: dict[Placement, list[Task]] = {}
    for task in tasks:
        groups.setdefault(resources(placements[task]), []).append(task)
    if kind == "single":
        return Plan(tuple(Batch("single", (task,)) for task in tasks), why)
    quota, randomly = quota_of(cluster, how, placements.values()), random.Random(seed)
    batches: list[Batch] = []
    for placement, members in groups.items():
        queue = queue_of(cluster, placement)
        if kind == "array":
            at_once = None if throttle_of(cluster, how) else how.jobs
            # half the quota: so one array fits beside another, and beside the user's other jobs
            size = min(queue.max_array_size or ARRAY_SIZE, (quota or 2 * ARRAY_SIZE) // 2, at_once or ARRAY_SIZE)
            batches += [_batch("array", chunk) for chunk in _even(members, size)]
        else:
            walltime_s = max(placements[task].walltime_s for task in members) + PACK_OVERHEAD_S
            size = max(1, (queue.max_walltime_s or PACK_S) // walltime_s)
            repeats = campaign.repeats
            batches += [_pack(chunk, size, repeats, randomly) for chunk in _even(members, size)]
    return Plan(tuple(batches), why)


def _chosen(cluster: Cluster, placements: Sequence[Placement], how: How) -> tuple[Kind, str]:
    """The kind of job, and the reason in words."""
    if how.mode != "auto":
        if how.mode == "array" and cluster.scheduler == "local":
            raise UserError("the local engine runs no job arrays; use --mode single or --mode pack")
        kinds: dict[str, Kind] = {"single": "single", "array": "array", "pack": "pack"}
        return kinds[how.mode], f"as --mode {how.mode} says"
    for is_so, kind, why in _rules(cluster, placements, quota_of(cluster, how, placements)):
        if is_so():
            return kind, why
    return "array", "one array is one submission for many runs"


Rule = tuple[Callable[[], bool], Kind, str]


def _rules(cluster: Cluster, placements: Sequence[Placement], quota: int | None) -> list[Rule]:
    """The first that holds decides."""
    count, alike = len(placements), _largest(placements)
    longest_s = max((placement.walltime_s for placement in placements), default=0)
    no_arrays = all(queue_of(cluster, placement).max_array_size == 1 for placement in placements)
    return [
        (lambda: cluster.scheduler == "local", "single", "this machine has no queue to wait in"),
        (lambda: count < FEW, "single", f"fewer than {FEW} runs"),
        (lambda: alike < 2, "single", "no two runs ask for the same resources"),
        (
            lambda: quota is not None and count > TIGHT * quota,
            "pack",
            f"the queue holds {quota} jobs of yours, and {count} runs are many more",
        ),
        (
            lambda: longest_s <= SHORT_S,
            "pack",
            f"runs of at most {format_duration(longest_s)} are shorter than a usual wait in the queue",
        ),
        (lambda: no_arrays, "single", "the queue takes no arrays"),
    ]


def _largest(placements: Sequence[Placement]) -> int:
    counts: dict[Placement, int] = {}
    for placement in map(resources, placements):
        counts[placement] = counts.get(placement, 0) + 1
    return max(counts.values(), default=0)


def _even(tasks: Sequence[Task], most: int) -> list[list[Task]]:
    """Chunks of nearly equal size, none over ``most``, and so none of one task where it can be helped."""
    number = -(-len(tasks) // max(1, most))
    return [list(tasks[len(tasks) * i // number : len(tasks) * (i + 1) // number]) for i in range(number)]


def _batch(kind: Kind, tasks: Sequence[Task]) -> Batch:
    return Batch(kind if len(tasks) > 1 else "single", tuple(tasks))


def _pack(tasks: list[Task], most: int, repeats: int, randomly: random.Random) -> Batch:
    """The tasks in random order, with one point's runs at both ends.

    Two repeats of a point serve where the pack holds such; else a point gets one run more than the sweep asks for, as
    the repeat after its last, unless the pack is small or full.
    """
    order = list(tasks)
    randomly.shuffle(order)
    first = next((task for task in order if any(_twins(task, other) for other in order)), None)
    if first is not None:
        last = next(task for task in order if _twins(task, first))
        inner = [task for task in order if task not in (first, last)]
        return Batch("pack", (first, *inner, last), (0, len(order) - 1))
    if len(order) < CANARY_TASKS or len(order) >= most:
        return _batch("pack", order)
    extra = order[0].model_copy(update={"repeat": repeats})
    return Batch("pack", (*order, extra), (0, len(order)), extra=1)


def _twins(one: Task, other: Task) -> bool:
    return one.point_id == other.point_id and one.repeat != other.repeat
