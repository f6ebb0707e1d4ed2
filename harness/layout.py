"""Every path of a campaign, in one place."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.model.names import attempt_name

#: variable that the job script sets where it has copied the data set to node-local storage: the ranks read there
#: instead of in the placement's data_path
DATA_DIR_VARIABLE = "HARNESS_DATA_DIR"

#: a campaign of more points than this is made with shards, each for the points whose ids begin with the same digits
SHARD_ABOVE = 10_000
SHARD_DIGITS = 2


@dataclass(frozen=True)
class _Directory:
    """What all layouts are: a directory, whose names they know. Python makes the methods of a frozen dataclass anew
    for each, in a millisecond, so there is one for all."""

    root: Path


class AttemptLayout(_Directory):
    """The directory of one attempt: what goes in (point.json, job.sh) and what comes out (everything else)."""

    @property
    def point(self) -> Path:
        return self.root / "point.json"

    @property
    def script(self) -> Path:
        return self.root / "job.sh"

    @property
    def claim(self) -> Path:
        """Made with mkdir by the job itself before it does anything: whoever cannot make it must leave."""
        return self.root / "started"

    @property
    def profile(self) -> Path:
        """profile/: the trace of the framework's profiler, where the point asks for one."""
        return self.root / "profile"

    @property
    def campaign_root(self) -> Path | None:
        """The campaign's directory, where this attempt lies in one."""
        # above the attempt lie point and runs, or point, shard and runs
        return next((root for root in self.root.parents[2:4] if (root / "campaign.json").is_file()), None)

    @property
    def exit(self) -> Path:
        return self.root / "exit.json"

    @property
    def stdout(self) -> Path:
        return self.root / "stdout"

    @property
    def stderr(self) -> Path:
        return self.root / "stderr"

    def events(self, rank: int) -> Path:
        return self.root / f"events.r{rank}.jsonl"

    def stage(self, node: str) -> Path:
        """Facts of the copy to node-local storage, written by the job script on each node (``uname -n``): the fields
        of a ``stage`` event. Absent where nothing was staged."""
        return self.root / f"stage.{node}.json"

    def samples(self, node: str) -> Path:
        return self.root / f"samples.{node}.jsonl"


class GroupLayout(_Directory):
    """The directory of one array or pack: what was submitted. Evidence lies in the attempts' own directories."""

    @property
    def meta(self) -> Path:
        """group.json: :class:`harness.model.group.Group`."""
        return self.root / "group.json"

    @property
    def script(self) -> Path:
        return self.root / "job.sh"

    @property
    def map(self) -> Path:
        """An array's attempts: the path of each by its index, each ended by a NUL byte."""
        return self.root / "attempts"

    def body(self, number: int) -> Path:
        """What the group's attempts run, counted from 1: one file for all that read the same data. Their own job.sh are
        symbolic links to it."""
        return self.root / f"body{number}.sh"


class CampaignLayout(_Directory):
    """The directory of one campaign: ``results/<campaign>/``."""

    @property
    def meta(self) -> Path:
        """campaign.json: the sweep's name and digest, the cluster, the tasks in submission order, refusals."""
        return self.root / "campaign.json"

    @property
    def ledger(self) -> Path:
        return self.root / "ledger.jsonl"

    @property
    def cluster(self) -> Path:
        """cluster.json: the cluster as it was described when the campaign was last planned."""
        return self.root / "cluster.json"

    @property
    def stop(self) -> Path:
        """Its presence asks the harness that drives the campaign to cancel its jobs and leave."""
        return self.root / "stop"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @cached_property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def groups(self) -> Path:
        return self.root / "groups"

    def storage(self, name: str) -> Path:
        """How fast a storage was when the campaign's first run read from it: facts of a ``storage`` event."""
        return self.root / f"storage.{name}.json"

    def group(self, name: str) -> GroupLayout:
        return GroupLayout(self.groups / name)

    def attempt(self, point_id: str, repeat: int, attempt: int) -> AttemptLayout:
        return AttemptLayout(Path(f"{self._point(point_id)}/{attempt_name(repeat, attempt)}"))

    def point(self, point_id: str) -> Path:
        """The directory of a point's attempts, in a shard where the campaign has such."""
        return Path(self._point(point_id))

    def _point(self, point_id: str) -> str:
        # asked a million times, so it is text that is put together
        shard = f"{self.runs}/{point_id[:SHARD_DIGITS]}"
        return f"{shard if os.path.isdir(shard) else self.runs}/{point_id}"  # noqa: PTH112

    @property
    def shards(self) -> list[Path]:
        """Where a campaign of very many points keeps them: file servers get slow with very many names in a directory.

        They are made with the campaign's directory or never; that they are there is all that says so.
        """
        return [self.runs / f"{number:0{SHARD_DIGITS}x}" for number in range(16**SHARD_DIGITS)]

    @property
    def runs_csv(self) -> Path:
        return self.root / "runs.csv"

    @property
    def runs_parquet(self) -> Path:
        return self.root / "runs.parquet"

    @property
    def steps_parquet(self) -> Path:
        return self.root / "steps.parquet"

    @property
    def collected(self) -> Path:
        """collected.json: what the derived tables were made from, so that unchanged evidence is not read again."""
        return self.root / "collected.json"

    @property
    def plots(self) -> Path:
        return self.root / "plots"

    @property
    def report(self) -> Path:
        return self.root / "report.html"


class ProjectLayout(_Directory):
    """Where configurations, results and job-script templates lie, relative to the directory the user works in."""

    @property
    def clusters(self) -> Path:
        return self.root / "configs" / "clusters"

    @property
    def sweeps(self) -> Path:
        return self.root / "configs" / "sweeps"

    @property
    def jobscripts(self) -> Path:
        return self.root / "jobscripts"

    @property
    def results(self) -> Path:
        return self.root / "results"

    def campaign(self, name: str) -> CampaignLayout:
        return CampaignLayout(self.results / name)


def project_root(start: Path) -> Path:
    """The nearest directory at or above ``start`` that holds ``configs/clusters``, else the working directory."""
    for directory in (start, *start.parents):
        if (directory / "configs" / "clusters").is_dir():
            return directory
    return Path.cwd()


def is_plain(path: str) -> bool:
    """Whether it is an absolute path that a directive of any scheduler takes as it is written."""
    return bool(re.fullmatch(r"/[A-Za-z0-9_.+@/-]*", path))
