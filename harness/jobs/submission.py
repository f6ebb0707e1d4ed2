"""What is handed to the scheduler as one job: an attempt alone, an array or a pack of them, written down beforehand."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.jobs.attempts import Workshop
from harness.jobs.durable import sync_file_system, write_new
from harness.jobs.groups import array_map, render_array, render_pack
from harness.jobs.render import render_shared
from harness.jobs.site import Site
from harness.layout import GroupLayout
from harness.model.campaign import Task
from harness.model.group import Group
from harness.model.job import RunSpec, group_job_name
from harness.model.ledger import AttemptKey

Kind = Literal["single", "array", "pack"]


@dataclass(frozen=True)
class Batch:
    """Tasks for one job. ``canaries``: the places in ``tasks`` of a pack's two; ``extra``: runs among them that the
    sweep does not ask for."""

    kind: Kind
    tasks: tuple[Task, ...]
    canaries: tuple[int, ...] = ()
    extra: int = 0

    @property
    def jobs(self) -> int:
        """What it counts for a scheduler's limits: each element of an array is a job."""
        return len(self.tasks) if self.kind == "array" else 1


@dataclass(frozen=True)
class Submission:
    """A batch whose attempts and script lie on disk. ``group`` is the group's name, empty for an attempt alone."""

    batch: Batch
    keys: tuple[AttemptKey, ...]
    job_name: str
    script: Path
    group: str = ""

    def job_ids(self, site: Site, job_id: str) -> dict[AttemptKey, str]:
        """The id of each attempt's job, from the one that the submission gave."""
        if self.batch.kind == "array":
            return {key: site.element_id(job_id, index) for index, key in enumerate(self.keys)}
        return dict.fromkeys(self.keys, job_id)


def prepare(
    workshop: Workshop,
    batch: Batch,
    known: Mapping[tuple[str, int], int],
    throttle: int | None,
    breathe: Callable[[], None] = lambda: None,
    last_group: int = 0,
) -> Submission:
    """As :func:`write`, durably, for the next attempts of the tasks.

    Args:
        known: the last attempt of each point and repeat that the ledger knows; new ones get higher numbers.
        last_group: the highest number of a group that the ledger knows.
    """
    job = write(workshop, batch, workshop.next_keys(batch.tasks, known), throttle, breathe, last_group)
    if job.group:
        sync_file_system(job.script.parent)
    else:
        workshop.settle(job.keys[0])
    return job


def write(
    workshop: Workshop,
    batch: Batch,
    keys: tuple[AttemptKey, ...],
    throttle: int | None = None,
    breathe: Callable[[], None] = lambda: None,
    last_group: int = 0,
) -> Submission:
    """Write the batch's attempts and its script; nothing is submitted yet, and nothing is durable.

    A group's group.json comes first: an attempt directory that is found after a crash is known to be of the group.

    Args:
        keys: the new attempt of each task.
        throttle: elements of an array that may run at once.
        breathe: called between attempts, since a thousand of them take their time on a slow file system.
        last_group: a new group gets a higher number, and a higher one than those on disk: so no two jobs share a name.
    """
    if batch.kind == "single":
        key, attempt, spec = workshop.make(batch.tasks[0], keys[0].attempt)
        return Submission(batch, (key,), spec.job_name, attempt.script)
    group, paths = _new_group(workshop, batch, keys, last_group)
    body = SharedBodies(workshop, group, paths)
    roots = []
    for task, key in zip(batch.tasks, keys, strict=True):
        roots.append(workshop.make(task, key.attempt, body)[1].root)
        breathe()
    if batch.kind == "array":
        write_new(paths.map, array_map(roots))
    write_new(paths.script, _script(workshop, group, paths, throttle), mode=0o755)
    return Submission(batch, keys, group.job_name, paths.script, group.name)


def _new_group(workshop: Workshop, batch: Batch, keys: tuple[AttemptKey, ...], last: int) -> tuple[Group, GroupLayout]:
    assert batch.kind != "single", "an attempt alone has no group"
    taken = (int(path.name[1:]) for path in workshop.layout.groups.glob("g[0-9]*") if path.name[1:].isdecimal())
    number = 1 + max([last, *taken])
    name, campaign = f"g{number}", workshop.campaign
    paths = workshop.layout.group(name)
    paths.root.mkdir(parents=True)
    group = Group(
        kind=batch.kind,
        name=name,
        number=number,
        job_name=group_job_name(campaign.name, number, campaign.uid),
        attempts=keys,
        canaries=tuple(keys[place] for place in batch.canaries),
    )
    write_new(paths.meta, group.model_dump_json(indent=1) + "\n")
    return group, paths


class SharedBodies:
    """The scripts of a group's attempts: one for all that differ in nothing that a script says."""

    def __init__(self, workshop: Workshop, group: Group, paths: GroupLayout):
        self._workshop, self._group, self._paths = workshop, group, paths
        self._targets: dict[tuple[str, str | None, bool], str] = {}

    def __call__(self, spec: RunSpec) -> str:
        """The script for a run, as seen from its attempt's directory, so that a campaign can be moved."""
        place, reads_data = spec.placement, spec.axes.dataset is not None
        target = self._targets.get(key := (place.data_path, place.stage_from, reads_data))
        if target is None:
            workshop, path = self._workshop, self._paths.body(len(self._targets) + 1)
            text = render_shared(workshop.cluster, spec, self._group.job_name, workshop.project_root)
            write_new(path, text, mode=0o755)
            attempt = workshop.layout.attempt(spec.point_id, spec.repeat, spec.attempt).root
            target = self._targets[key] = os.path.relpath(path, attempt)
        return target


def _script(workshop: Workshop, group: Group, paths: GroupLayout, throttle: int | None) -> str:
    placements = [workshop.campaign.points[key.point_id].placement for key in group.attempts]
    root = workshop.project_root
    if group.kind == "array":
        return render_array(workshop.cluster, placements, group.job_name, paths.root, root, throttle)
    roots = [workshop.paths(key).root for key in group.attempts]
    attempts = list(zip(roots, placements, strict=True))
    return render_pack(workshop.cluster, attempts, group.job_name, paths.root, root)
