"""Which rank this process is, from the variables that launchers set.

Open MPI: ``OMPI_COMM_WORLD_*`` (mpirun(1), "Environment variables"). MPICH and Intel MPI (hydra): ``PMI_RANK``,
``PMI_SIZE``, ``MPI_LOCALRANKID``, ``MPI_LOCALNRANKS``; Cray PALS adds ``PALS_LOCAL_RANKID``. Slurm: ``SLURM_PROCID``,
``SLURM_STEP_NUM_TASKS``, ``SLURM_LOCALID``, ``SLURM_STEP_TASKS_PER_NODE`` (srun(1), "Output environment variables").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import UserError
from harness.runtime.interfaces import Ranks


@dataclass(frozen=True)
class _Source:
    """The variables of one family of launchers; the first one set of each tuple counts."""

    name: str
    rank: str
    world: str
    local_rank: tuple[str, ...]
    local_world: tuple[str, ...]


_OPENMPI = _Source(
    "Open MPI",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    ("OMPI_COMM_WORLD_LOCAL_RANK",),
    ("OMPI_COMM_WORLD_LOCAL_SIZE",),
)
_PMI = _Source(
    "PMI",
    "PMI_RANK",
    "PMI_SIZE",
    ("MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"),
    ("MPI_LOCALNRANKS", "PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"),
)
_SLURM = _Source("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ("SLURM_LOCALID",), ())


def detect(environ: Mapping[str, str], hostname: str, ranks_per_node: int = 1) -> Ranks:
    """This process's place among the ranks; without any launcher's variables the only rank of a world of 1.

    ``ranks_per_node`` is used where a launcher names no local rank: ranks are then taken to fill node after node.

    Raises:
        UserError: when Open MPI's and PMI's variables disagree, as when one MPI's launcher runs inside another's,
            or when a variable is missing its partner or is no number.
    """
    # Private Slurm sites run several virtual nodes on one host: slurmd's own node name tells them apart.
    node = environ.get("SLURMD_NODENAME") or hostname
    found = [read for source in (_OPENMPI, _PMI) if (read := _read(environ, source))]
    if len(found) == 2 and found[0][:2] != found[1][:2]:
        raise UserError(
            f"Open MPI says rank {found[0][0]} of {found[0][1]}, PMI says rank {found[1][0]} of {found[1][1]}: "
            "two launchers are nested; start the ranks with one mpirun or srun only"
        )
    # mpirun inside an sbatch script leaves the batch shell's SLURM_PROCID=0 to every rank, and on further nodes
    # that of its own daemon, so Slurm's word counts only in a step that no MPI launcher has begun.
    if not found and "SLURM_STEP_ID" in environ and (read := _read(environ, _SLURM)):
        found = [read]
    if not found:
        return Ranks(rank=0, world=1, local_rank=0, local_world=1, node=node)
    rank, world, local_rank, local_world = found[0]
    if local_world is None:
        local_world = _slurm_local_world(environ) or min(ranks_per_node, world)
    if local_rank is None and environ.get(_SLURM.rank) == str(rank):
        # srun --mpi=pmi2 sets PMI_RANK and no local one; --distribution=cyclic deals ranks to nodes in turn
        local_rank = next((_number(environ, name) for name in _SLURM.local_rank if name in environ), None)
    if local_rank is None:
        local_rank = rank % local_world
    return _checked(Ranks(rank=rank, world=world, local_rank=local_rank, local_world=local_world, node=node))


def _read(environ: Mapping[str, str], source: _Source) -> tuple[int, int, int | None, int | None] | None:
    if source.rank not in environ:
        return None
    if source.world not in environ:
        raise UserError(f"{source.rank} is set but {source.world} is not: start the ranks with mpirun or srun")
    local_rank = next((_number(environ, name) for name in source.local_rank if name in environ), None)
    local_world = next((_number(environ, name) for name in source.local_world if name in environ), None)
    return _number(environ, source.rank), _number(environ, source.world), local_rank, local_world


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ[name]
    if not re.fullmatch(r"\d{1,9}", text):
        raise UserError(f"{name}={text!r} is no number: start the ranks with mpirun or srun")
    return int(text)


def _slurm_local_world(environ: Mapping[str, str]) -> int | None:
    """Tasks on this node, from the run-length list ``4(x2),3`` and the node's index in the step."""
    counts: list[int] = []
    for part in filter(None, environ.get("SLURM_STEP_TASKS_PER_NODE", "").split(",")):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if not match:
            return None
        counts += [int(match[1])] * int(match[2] or 1)
    index = environ.get("SLURM_NODEID", "0")
    return counts[int(index)] if index.isdigit() and int(index) < len(counts) else None


def _checked(ranks: Ranks) -> Ranks:
    if not (ranks.rank < ranks.world and ranks.local_rank < ranks.local_world <= ranks.world):
        raise UserError(
            f"impossible ranks: rank {ranks.rank} of {ranks.world}, local rank {ranks.local_rank} of "
            f"{ranks.local_world}: start the ranks with one mpirun or srun only"
        )
    return ranks
