"""Attempt directories: what goes into one before its job is submitted, and the claim that decides who runs it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.files import read_file, sync_directory
from harness.jobs.durable import sync, write_new
from harness.jobs.group_traces import is_group_name, rebuilt
from harness.layout import AttemptLayout, CampaignLayout
from harness.model.campaign import Campaign, Task
from harness.model.evidence import Verdict, gather, judge
from harness.model.group import Group
from harness.model.job import JobState, RunSpec, group_job_name, job_name
from harness.model.ledger import AttemptKey

if TYPE_CHECKING:
    from harness.model.cluster import Cluster

#: (run, directory of the attempt) → the text of its job script
Render = Callable[[RunSpec, Path], str]

_ATTEMPT = re.compile(r"r(\d+)a(\d+)")

#: exit code of a job that found its attempt already claimed
CLAIMED_CODE = 93
#: exit code of a job whose node cannot write the attempt directory
UNWRITABLE_CODE = 94
#: inside a claim that the harness made itself, so that a late job cannot start any more
FENCE = "by-harness"


@dataclass(frozen=True)
class Workshop:
    """All that is needed to make an attempt. ``layout`` lies at an absolute path that compute nodes see."""

    campaign: Campaign
    cluster: Cluster
    layout: CampaignLayout
    render: Render
    harness_version: str
    git_commit: str | None = None
    project_root: Path = Path()

    def make(
        self, task: Task, attempt: int, body: Callable[[RunSpec], str] | None = None
    ) -> tuple[AttemptKey, AttemptLayout, RunSpec]:
        """Write point.json and job.sh of a new attempt; they are yet to be made durable.

        ``body`` gives the path of a script that it shares with others, which its own job.sh then points to; None: it
        has one of its own.
        """
        spec = self.spec(task, attempt)
        key = AttemptKey(task.point_id, task.repeat, attempt)
        paths = self.paths(key)
        script = body(spec) if body else self.render(spec, paths.root)
        _make_directory(paths.root.parent)
        os.mkdir(paths.root)  # noqa: PTH102  much faster, and a campaign may have a hundred thousand
        write_new(paths.point, spec.model_dump_json(indent=1) + "\n")
        if body:
            paths.script.symlink_to(script)
        else:
            write_new(paths.script, script, mode=0o755)
        return key, paths, spec

    def settle(self, key: AttemptKey) -> None:
        """Make an attempt durable that was made just now."""
        paths = self.paths(key)
        sync(paths.point, paths.script, paths.root, paths.root.parent, paths.root.parent.parent)

    def spec(self, task: Task, attempt: int) -> RunSpec:
        point = self.campaign.points[task.point_id]
        return RunSpec(
            campaign=self.campaign.name,
            campaign_uid=self.campaign.uid,
            point_id=task.point_id,
            repeat=task.repeat,
            attempt=attempt,
            axes=point.axes,
            placement=point.placement,
            harness_version=self.harness_version,
            git_commit=self.git_commit,
        )

    def paths(self, key: AttemptKey) -> AttemptLayout:
        return self.layout.attempt(*key)

    def job_name(self, key: AttemptKey) -> str:
        return job_name(self.campaign.name, *key, self.campaign.uid)

    def verdict(self, key: AttemptKey, told: JobState | None = None) -> Verdict | None:
        """The verdict on the evidence of an attempt, None while there is none."""
        return verdict_on(self.campaign, self.layout, key, told)

    def next_keys(self, tasks: Sequence[Task], known: Mapping[tuple[str, int], int]) -> tuple[AttemptKey, ...]:
        """The next attempt of each task, beyond its directories and the last one ``known`` by point and repeat."""
        keys = []
        for task in tasks:
            numbers = [key.attempt for key in self.on_disk_of(task)]
            last = max(known.get((task.point_id, task.repeat), 0), *numbers, 0)
            keys.append(AttemptKey(task.point_id, task.repeat, last + 1))
        return tuple(keys)

    def groups_on_disk(self) -> Iterator[Group]:
        """The arrays and packs that have a directory: by group.json, or by what else is left of them."""
        for path in sorted(self.layout.groups.glob("*")):
            name, group = path.name, None
            with contextlib.suppress(OSError, ValueError):
                group = Group.model_validate_json(read_file(path / "group.json"))
            if is_group_name(name) and (group is None or group.name != name):
                group = rebuilt(self.layout, name, self.group_job_name(name))
            if group is not None:
                yield group

    def group_job_name(self, name: str) -> str:
        """The scheduler's name of the group of this name."""
        return group_job_name(self.campaign.name, int(name[1:]), self.campaign.uid)

    def on_disk(self) -> Iterator[AttemptKey]:
        """The attempts of this campaign's tasks that have a directory, whatever the ledger says."""
        for task in self.campaign.tasks:
            yield from self.on_disk_of(task)

    def on_disk_of(self, task: Task) -> Iterator[AttemptKey]:
        return attempts_on_disk(self.layout, task)


def attempts_on_disk(layout: CampaignLayout, task: Task) -> Iterator[AttemptKey]:
    """The attempts of a task that have a directory."""
    try:
        names = os.listdir(layout.point(task.point_id))  # noqa: PTH208  much faster, and asked of every task
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        if (match := _ATTEMPT.fullmatch(name)) and int(match[1]) == task.repeat:
            yield AttemptKey(task.point_id, task.repeat, int(match[2]))


def _make_directory(path: Path) -> None:
    """Make a point's directory, unless it is there: mostly it is not, and what lies above is."""
    try:
        os.mkdir(path)  # noqa: PTH102  much faster
    except FileExistsError:
        pass
    except FileNotFoundError:
        path.mkdir(parents=True, exist_ok=True)


def verdict_on(
    campaign: Campaign, layout: CampaignLayout, key: AttemptKey, told: JobState | None = None
) -> Verdict | None:
    """The verdict on the evidence of an attempt, None while there is none; ``told``: what the scheduler says."""
    point = campaign.points.get(key.point_id)
    if point is None:
        return None
    placement = point.placement
    return judge(gather(layout.attempt(*key), placement.ranks), placement.walltime_s, told)


def fence(paths: AttemptLayout) -> bool:
    """Make the claim in the job's stead, so that it can never start; False when the job has made it before.

    This is what makes it safe to submit a task again although an earlier job may still turn up.
    """
    try:
        paths.claim.mkdir()
    except FileExistsError:
        return (paths.claim / FENCE).exists()
    except FileNotFoundError:
        return True  # no directory, so a job that turns up cannot claim either
    (paths.claim / FENCE).touch()
    sync_directory(paths.root)
    return True


def has_started(paths: AttemptLayout) -> bool:
    return paths.claim.is_dir() and not (paths.claim / FENCE).exists()
