"""A recommended setting as what a job script asks for: the scheduler's directives and the launcher's line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness import catalog
from harness.jobs.launchers import launch_argv, quote
from harness.jobs.schedulers.interface import Scheduler
from harness.jobs.schedulers.words import mebibytes
from harness.model.axes import Axes
from harness.model.campaign import Campaign, PlannedPoint
from harness.model.cluster import Cluster
from harness.model.job import Placement
from harness.plan.place import Site, choose_queue, place
from harness.units import format_duration

if TYPE_CHECKING:
    from harness.analysis.capacity import Group
    from harness.analysis.capacity_lanes import Setting
    from harness.analysis.recommend import Answer, Refused

#: A job name that all schedulers take; the user puts an own one.
JOB_NAME = "training"
#: The name of the sweep that holds a recommended setting.
SWEEP_NAME = "recommended"


@dataclass(frozen=True)
class Request:
    """``lines`` of a job script, without its first; where this machine's own engine runs the jobs, a sweep to run.

    ``head`` precedes them in a file. ``refusals``: why the cluster would not take it.
    """

    axes: Axes
    lines: tuple[str, ...]
    refusals: tuple[str, ...]
    head: tuple[str, ...] = ("#!/bin/bash",)

    def as_values(self) -> dict[str, Any]:
        return {
            "axes": self.axes.model_dump(exclude_defaults=True),
            "lines": list(self.lines),
            "refusals": list(self.refusals),
        }


def request_of(
    answer: Answer | Refused, group: Group, campaign: Campaign, cluster: Cluster, queue: str | None
) -> Request | None:
    """The request that matches an answer; None for a refusal.

    Raises:
        UserError: the cluster has no such queue.
    """
    from harness.analysis.recommend import Refused

    if isinstance(answer, Refused):
        return None
    planned = _nearest_point(answer.setting, group, campaign)
    axes = _axes(planned.axes, answer.setting)
    named = choose_queue(cluster, queue) if queue else planned.placement.queue
    memory = None if cluster.memory_per_core_bytes else planned.placement.memory_bytes
    placed = place(axes, Site(cluster, named, planned.placement.walltime_s, memory))
    if isinstance(placed, list):
        return Request(axes, (), tuple(reason for _, reason in placed))
    if cluster.scheduler == "local":
        return Request(axes, tuple(_sweep_lines(axes, cluster, placed)), (), head=())
    return Request(axes, tuple(_lines(cluster, placed)), ())


def _nearest_point(setting: Setting, group: Group, campaign: Campaign) -> PlannedPoint:
    """A planned point of the same training and layout; its exchange, storage and limits serve the request."""

    def alike(planned: PlannedPoint) -> tuple[bool, bool]:
        axes = planned.axes
        layout = (axes.nodes, axes.ranks_per_node) == (setting.nodes, setting.ranks_per_node)
        return layout, axes.storage == setting.storage

    return max((campaign.points[name] for name in group.point_ids if name in campaign.points), key=alike)


def _axes(axes: Axes, setting: Setting) -> Axes:
    return axes.model_copy(
        update={
            "cpu_cores": round(setting.cores * setting.ranks_per_node),
            "workers": setting.workers,
            "parallel_threads": setting.threads,
            "prefetch": setting.prefetch,
            "storage": setting.storage or axes.storage,
            "nodes": setting.nodes,
            "ranks_per_node": setting.ranks_per_node,
        }
    )


def _lines(cluster: Cluster, placement: Placement) -> list[str]:
    scheduler: Scheduler = catalog.load(catalog.lookup(catalog.SCHEDULERS, cluster.scheduler, "scheduler"))
    asked = scheduler.directives(cluster, placement, JOB_NAME, "training.log")
    # the harness's own jobs write their output themselves; a user's job wants it kept
    directives = [line for line in asked if "/dev/null" not in line]
    launch = " ".join(quote(word) for word in launch_argv(cluster, placement))
    return [*(f"{scheduler.PREFIX} {line}" for line in directives), f"{launch} {quote(cluster.python)} train.py"]


def _sweep_lines(axes: Axes, cluster: Cluster, placement: Placement) -> list[str]:
    """A sweep of the one setting, in YAML: values in JSON's spelling, which YAML reads alike."""
    values = {name: json.dumps(value, ensure_ascii=False) for name, value in axes.non_default().items()}
    memory = [f"memory: {mebibytes(placement.memory_bytes)}mb"] if placement.memory_bytes else []
    return [
        f"# in {SWEEP_NAME}.yml, then: harness run {SWEEP_NAME}.yml",
        f"name: {SWEEP_NAME}",
        f"cluster: {json.dumps(cluster.name, ensure_ascii=False)}",
        "base:",
        *(f"  {name}: {value}" for name, value in values.items()),
        f'walltime: "{format_duration(placement.walltime_s)}"',
        *memory,
    ]
