"""Which CPUs a local job gets: never one that another job holds, and whole cores of one socket as far as possible."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from harness.config import this_machine
from harness.jobs.local_registry import JobDirectory, Registry, Request
from harness.jobs.process import is_alive

_TOPOLOGY = Path("/sys/devices/system/cpu")


@dataclass
class Share:
    """CPUs and the open files that hold them; a child that inherits the files holds them too."""

    cpus: tuple[int, ...]
    locks: list[IO[str]]

    def release(self) -> None:
        for lock in self.locks:
            lock.close()


def take_share(registry: Registry, job: JobDirectory, request: Request) -> Share | None:
    """The job's CPUs if it may start now, else None. First come, first served.

    A waiting job asks ten times a second while another is measured: the locks come first, for they cost two calls where
    the CPUs are taken, and reading all jobs hundreds.
    """
    with registry.gate():
        share = _lock_all(registry, request)
        if share is not None and (_is_behind(registry, job) or not _memory_fits(registry, request)):
            share.release()
            return None
        return share


def _lock_all(registry: Registry, request: Request) -> Share | None:
    machine = registry.lock_machine(request.exclusive)
    if machine is None:
        return None
    share = Share((), [machine])
    for cpu in by_distance(sorted(os.sched_getaffinity(0))):
        if len(share.cpus) == request.cores:
            break
        if (lock := registry.lock_cpu(cpu)) is not None:
            share.locks.append(lock)
            share.cpus = tuple(sorted((*share.cpus, cpu)))
    if len(share.cpus) == request.cores:
        return share
    share.release()
    return None


def by_distance(cpus: Sequence[int]) -> list[int]:
    """CPUs ordered so that a prefix uses whole cores before second threads, and one socket before the next.

    Where the system does not tell its topology (some containers), the order of numbers stands.
    """
    order: list[tuple[int, ...]] = []
    seen: dict[tuple[int, int], int] = {}
    for cpu in cpus:
        place = (_number(cpu, "physical_package_id"), _number(cpu, "core_id", cpu))
        seen[place] = thread = seen.get(place, -1) + 1
        order.append((thread, *place, cpu))
    return [place[-1] for place in sorted(order)]


def _is_behind(registry: Registry, job: JobDirectory) -> bool:
    """Whether an earlier job still waits."""
    for other in registry.all():
        if other.id >= job.id:
            return False
        state = other.state()
        if state is not None and state.state == "QUEUED" and is_alive(state.keeper):
            return True
    return False


def _memory_fits(registry: Registry, request: Request) -> bool:
    if request.memory_bytes is None:
        return True
    used = sum(_held_bytes(other) for other in registry.all())
    return used + request.memory_bytes <= this_machine.memory_bytes()


def _held_bytes(job: JobDirectory) -> int:
    state, request = job.state(), job.request()
    if state is None or request is None or state.state != "RUNNING":
        return 0
    holders = [state.keeper, *filter(None, [state.leader])]
    return (request.memory_bytes or 0) if any(map(is_alive, holders)) else 0


def _number(cpu: int, fact: str, default: int = 0) -> int:
    try:
        return int((_TOPOLOGY / f"cpu{cpu}" / "topology" / fact).read_text())
    except (OSError, ValueError):
        return default
