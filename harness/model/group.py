"""A group: attempts submitted as one job. The content of ``group.json``, written before the scheduler is asked."""

from __future__ import annotations

from typing import Literal

from harness.model.axes import Frozen, PositiveInt
from harness.model.ledger import AttemptKey

GROUP_SCHEMA = 1


class Group(Frozen):
    """``attempts`` stand in their order: an array's by index, a pack's as they run.

    ``canaries`` are attempts at one and the same point, at the beginning and at the end of a pack: what lies between
    the two is the drift of the node, not a difference of points.
    """

    schema_version: int = GROUP_SCHEMA
    kind: Literal["array", "pack"]
    name: str
    number: PositiveInt
    job_name: str
    attempts: tuple[AttemptKey, ...]
    canaries: tuple[AttemptKey, ...] = ()
