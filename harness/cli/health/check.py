"""One thing looked at: what was found, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from harness.model.cluster import Cluster

#: note: nothing is wrong with it, or it could not be looked at from here
Status = Literal["ok", "note", "warning", "failure"]


@dataclass(frozen=True)
class Check:
    """``remedy`` is empty only where nothing needs to be done. ``facts`` are for scripts."""

    area: str
    name: str
    status: Status
    message: str
    remedy: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """Ranks to start for the look at binding; None: two on a node, sharing the cores there."""

    nodes: int = 1
    ranks_per_node: int | None = None
    cores_per_rank: int | None = None


@dataclass(frozen=True)
class Needs:
    """What the points of a sweep need: frameworks and gradient exchanges, and (directory, data set, encoding)."""

    software: frozenset[str]
    data: frozenset[tuple[str, str, str]]


@dataclass(frozen=True)
class Patient:
    """What is looked at, and from where.

    ``in_job``: this process runs where the cluster's jobs run, so what a job needs must be there. ``needs``: what a
    sweep needs, where one was named.
    """

    cluster: Cluster
    project_root: Path
    in_job: bool
    say: Callable[[str], None] = lambda _text: None
    """Told what is being looked at, for the impatient."""
    request: Request = Request()
    measure_speed: bool = True
    needs: Needs | None = None


Area = Callable[[Patient], Iterator[Check]]
