"""CPUs and threads of a rank, settled before a framework is imported: thread pools are sized at import.

A rank gets exactly the cores its point asks for. Where the launcher bound it to so many cores, that binding stays;
where the launcher bound it to more (a socket, or everything the job has), the node's ranks share what they have,
disjointly, and confine themselves.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_SYSTEM_CPUS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True)
class Finding:
    code: str
    evidence: Mapping[str, Any]
    advice: str


def cores_of(cpus: Sequence[int], root: Path = _SYSTEM_CPUS) -> dict[int, tuple[int, int]]:
    """CPU → (package, core): hardware threads of one core have equal values. Unknown topology: each CPU a core."""
    cores = {}
    for cpu in cpus:
        topology = root / f"cpu{cpu}" / "topology"
        try:
            package, core = (int((topology / name).read_text()) for name in ("physical_package_id", "core_id"))
            cores[cpu] = (package, core)
        except (OSError, ValueError):
            cores[cpu] = (-1, cpu)
    return cores


def one_per_core(cpus: Sequence[int], cores: Mapping[int, tuple[int, int]]) -> list[int]:
    """All ``cpus``: the first hardware thread of every core before any second one, one package before the next.

    Many machines number their packages' CPUs in turn; the first few of them would be half on either package.
    """
    seen: dict[tuple[int, int], int] = {}
    order = []
    for cpu in sorted(cpus):
        turn = seen[cores[cpu]] = seen.get(cores[cpu], -1) + 1
        order.append((turn, cores[cpu][0], cpu))
    return [cpu for *_, cpu in sorted(order)]


def share(
    masks: Sequence[Sequence[int] | None], requested: int, cores: Mapping[int, tuple[int, int]]
) -> list[tuple[int, ...]]:
    """The CPUs of each of a node's ranks, by local rank.

    Args:
        masks: CPUs that each rank was allowed by its launcher; None for a rank that has not said.
        requested: cores per rank.
        cores: topology of all CPUs in ``masks``, as from :func:`cores_of`.

    Ranks bound to ``requested`` cores or fewer keep their mask. The others, in order, take ``requested`` CPUs of
    their own mask that no rank has; where fewer are left, those; where none is left, they keep the whole mask.
    """
    kept = [mask is not None and len({cores[cpu] for cpu in mask}) <= requested for mask in masks]
    taken = {cpu for mask, keep in zip(masks, kept, strict=True) if keep and mask for cpu in mask}
    shares = []
    for mask, keep in zip(masks, kept, strict=True):
        mine = tuple(sorted(mask or ()))
        if not keep and mask:
            free = [cpu for cpu in one_per_core(mask, cores) if cpu not in taken]
            mine = tuple(sorted(free[:requested])) or mine
            taken.update(mine)
        shares.append(mine)
    return shares


def confine(cpus: Sequence[int]) -> tuple[int, ...]:
    """Confine this process, and all it starts from now on, to ``cpus``; returns the CPUs it really has."""
    with suppress(OSError):  # forbidden in some containers; the CPUs read back are recorded and judged
        os.sched_setaffinity(0, cpus)
    return tuple(sorted(os.sched_getaffinity(0)))


def thread_environment(threads: int) -> dict[str, str]:
    """Variables that size the thread pools of OpenMP and BLAS libraries when they are loaded."""
    return dict.fromkeys(THREAD_VARIABLES, str(threads))


def quota_findings(requested: int, ranks: int, quota: float | None) -> list[Finding]:
    """What a quota of the control group takes from the cores of a node's ``ranks``, which their CPUs do not show."""
    if quota is None or quota >= requested * ranks:
        return []
    evidence = {"requested_cores": requested, "ranks": ranks, "quota_cpus": quota}
    advice = "the job's control group has a quota of CPU time: ask for as many cores, or run where there is none"
    return [Finding("fewer_cores_than_requested", evidence, advice)]


def findings(
    requested: int,
    mask: Sequence[int],
    shares: Sequence[Sequence[int]],
    local_rank: int,
    actual: Sequence[int],
    topology: Mapping[int, tuple[int, int]] | None = None,
) -> list[Finding]:
    """What makes the CPUs of this rank other than the point says, with the launcher's option that mends it.

    ``topology`` as from :func:`cores_of`, of the CPUs of all ranks; None: this machine's. Hardware threads of one core
    are no cores, be they one rank's or those of two.
    """
    others = {cpu for rank, cpus in enumerate(shares) if rank != local_rank for cpu in cpus}
    cores = cores_of(sorted(others.union(actual))) if topology is None else topology
    own = {cores[cpu] for cpu in actual}
    count = len(own)
    evidence = {"requested_cores": requested, "launcher_cpus": list(mask), "allowed_cpus": list(actual)}
    mend = f"launch with mpirun --map-by socket:PE={requested} --bind-to core"
    within = f", or with --map-by socket --bind-to none inside a job that holds {requested} cores for each rank"
    found = []
    siblings = sorted(cpu for cpu in others.difference(actual) if cores[cpu] in own)
    halves = len(actual) >= requested > count
    if halves or siblings:
        advice = (
            "hardware threads were granted as cores: ask for all of each core (PBS: directives: {ncpus_per_core: 2} in "
            "the cluster's file), or turn simultaneous threads off"
        )
        beside = {"cores": count, "other_ranks_cpus": siblings}
        found.append(Finding("hardware_threads_as_cores", {**evidence, **beside}, advice))
    if count < requested and not halves:
        found.append(Finding("fewer_cores_than_requested", evidence, mend + within))
    elif count > requested:
        advice = f"{mend}; the rank was not allowed to confine itself"
        found.append(Finding("more_cores_than_requested", evidence, advice))
    if common := sorted(others & set(actual)):
        found.append(Finding("cores_shared_by_ranks", {**evidence, "shared_cpus": common}, mend + within))
    return found
