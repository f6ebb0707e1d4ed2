"""The engine of workloads without a framework."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

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

    def profile(self, directory: Path) -> AbstractContextManager[Any]:
        """There is no profiler where there is no framework."""
        return nullcontext()
