"""What a fake PBS site is like: nodes, queues, limits, history; and the switches a test may turn while it runs."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sites.pbs.words import SERVER


@dataclass(frozen=True)
class Queue:
    """``per_user`` limits a user's queued jobs, array elements counted; ``hook`` asks what ALCF's queues ask."""

    enabled: bool = True
    started: bool = True
    max_ncpus: int | None = None
    max_walltime_s: int | None = None
    per_user: int | None = None
    hook: bool = False


def _queues() -> dict[str, dict[str, Any]]:
    return {
        "workq": {},
        "volta_gpu": {"max_ncpus": 40},
        "small": {"max_walltime_s": 3600},
        "debug": {},
        "disabledq": {"enabled": False},
        "stoppedq": {"started": False},
        "limitq": {"per_user": 2},
        "alcf": {"hook": True},
    }


def _nodes() -> list[dict[str, Any]]:
    return [{"name": f"pbsn{number}", "labels": {"system": "polaris"}} for number in (1, 2)]


@dataclass(frozen=True)
class Settings:
    """``labels`` are the site-defined resources of a chunk, ``strings`` those of a whole job.

    ``kill_delay_s`` passes only where a job does not end when told to: on a busy machine that may take it long.
    """

    name: str = SERVER
    nodes: list[dict[str, Any]] = field(default_factory=_nodes)
    queues: dict[str, dict[str, Any]] = field(default_factory=_queues)
    default_queue: str = "workq"
    labels: list[str] = field(default_factory=lambda: ["ngpus", "system"])
    strings: list[str] = field(default_factory=lambda: ["filesystems"])
    max_array_size: int = 10000
    path: str = "/usr/local/bin:/usr/bin:/bin"
    kill_delay_s: float = 60.0
    own_hostnames: bool = False
    reject_root: bool = False
    dialect: str = "openpbs"
    seed: int = 0
    # switches
    down: bool = False
    scheduling: bool = True
    history: bool = True
    forget_ended: bool = False
    json_style: str = "new"

    def queue(self, name: str) -> Queue:
        return Queue(**self.queues[name])

    def changed(self, **values: Any) -> Settings:
        return dataclasses.replace(self, **values)

    @classmethod
    def load(cls, path: Path) -> Settings:
        return cls(**json.loads(path.read_text()))

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(dataclasses.asdict(self)))
