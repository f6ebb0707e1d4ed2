"""Clocks. Step data use a monotonic clock only: wall-clock time jumps when a node's time is corrected."""

from __future__ import annotations

import time
from collections.abc import Callable

from harness import catalog
from harness.model.job import RunSpec
from harness.runtime.interfaces import Clock

_NS = 1_000_000_000


class SystemClock:
    """``time.monotonic``: CLOCK_MONOTONIC, one scale for all processes of a node."""

    def __init__(self) -> None:
        self.now = time.monotonic
        self.sleep = time.sleep


class VirtualClock:
    """Time that passes only in :meth:`sleep`, counted in whole nanoseconds so that sums are exact."""

    def __init__(self) -> None:
        self._now_ns = 0

    def now(self) -> float:
        return self._now_ns / _NS

    def sleep(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("time cannot go back")
        self._now_ns += round(seconds * _NS)


def clock_for(spec: RunSpec) -> Clock:
    """Virtual for a workload whose option ``clock`` (or its default in the catalog) says so, else the system's.

    Raises:
        UserError: for an unknown workload or clock.
    """
    option = catalog.lookup(catalog.WORKLOADS, spec.axes.workload, "workload").options.get("clock")
    name = spec.axes.options.get("clock", option.default) if option else "real"
    clocks: dict[str, Callable[[], Clock]] = {"real": SystemClock, "virtual": VirtualClock}
    return catalog.lookup(clocks, str(name), "clock")()
