"""Many attempts in one submission: job arrays with an index map, and packs that share one allocation.

Either only decides which ``job.sh`` runs when; the attempts' scripts do the rest, claim and evidence included.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from harness.errors import UserError
from harness.jobs.launchers import quote
from harness.jobs.render import render_template, scheduler_of
from harness.jobs.schedulers.interface import ArrayRange
from harness.layout import GroupLayout
from harness.model.cluster import Cluster
from harness.model.job import Placement

ARRAY_MAP = GroupLayout(Path()).map.name
#: seconds beyond the attempts' own walltimes that a pack asks for, each for starting and for ending its ranks
PACK_OVERHEAD_S = 60
#: seconds that a pack lets an attempt run beyond its walltime, so that its own clock says that it was over
PACK_GRACE_S = 2


@lru_cache(maxsize=1024)
def resources(placement: Placement) -> Placement:
    """What attempts of one submission must have in common: the placement without what each may have of its own."""
    return placement.model_copy(update={"walltime_s": 1, "data_path": "", "data_scope": "shared", "stage_from": None})


def array_map(attempt_dirs: Sequence[Path]) -> bytes:
    """The content of :data:`ARRAY_MAP`."""
    return b"".join(str(path).encode() + b"\0" for path in attempt_dirs)


def render_array(
    cluster: Cluster,
    placements: Sequence[Placement],
    job_name: str,
    array_dir: Path,
    project_root: Path,
    throttle: int | None = None,
) -> str:
    """The script of an array of attempts in the order of :func:`array_map`, at most ``throttle`` of them at once.

    ``array_dir`` holds the map, and one log of the scheduler's for each element.

    Raises:
        UserError: the attempts differ in resources, or the scheduler has no such array.
    """
    scheduler = scheduler_of(cluster)
    placement = _common(placements).model_copy(update={"walltime_s": max(p.walltime_s for p in placements)})
    array = ArrayRange(len(placements), throttle)
    lines = scheduler.directives(cluster, placement, job_name, f"{array_dir}/", array)
    values = {
        "directives": [f"{scheduler.PREFIX} {line}" for line in lines],
        "index_variable": scheduler.ARRAY_INDEX_VARIABLE,
        "map": quote(str(array_dir / ARRAY_MAP)),
    }
    return render_template("array.sh.j2", values, project_root)


def render_pack(
    cluster: Cluster,
    attempts: Sequence[tuple[Path, Placement]],
    job_name: str,
    pack_dir: Path,
    project_root: Path,
) -> str:
    """The script that runs ``attempts`` in their order in one allocation, for the sum of their walltimes.

    Raises:
        UserError: the attempts differ in resources.
    """
    scheduler = scheduler_of(cluster)
    placements = [placement for _, placement in attempts]
    total_s = sum(placement.walltime_s + PACK_OVERHEAD_S for placement in placements)
    placement = _common(placements).model_copy(update={"walltime_s": total_s})
    lines = scheduler.directives(cluster, placement, job_name, str(pack_dir / "scheduler.log"))
    values = {
        "directives": [f"{scheduler.PREFIX} {line}" for line in lines],
        "attempts": [(placement.walltime_s + PACK_GRACE_S, quote(str(path))) for path, placement in attempts],
    }
    return render_template("pack.sh.j2", values, project_root)


def _common(placements: Sequence[Placement]) -> Placement:
    if len({resources(placement) for placement in placements}) != 1:
        raise UserError("attempts that ask for different resources cannot share an array or a pack")
    return resources(placements[0])
