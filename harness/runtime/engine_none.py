"""The engine of workloads without a framework."""

from __future__ import annotations

from harness.model.job import RunSpec
from harness.runtime.interfaces import Ranks


class Engine:
    """Nothing to import, no thread pools, the CPU as device."""

    name = "none"

    def prepare(self, spec: RunSpec, ranks: Ranks, threads: int) -> str:
        return "cpu"

    def thread_pools(self) -> dict[str, int]:
        return {}

    def versions(self) -> dict[str, str]:
        return {}
