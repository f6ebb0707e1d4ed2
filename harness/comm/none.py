"""No exchange: one rank, or several that train independently of each other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from harness.model.job import RunSpec
from harness.runtime.interfaces import Ranks


class NoExchange:
    """Every rank is alone; what it gives is what it gets."""

    name = "none"

    def average(self, arrays: Sequence[Any]) -> list[Any]:
        return list(arrays)

    def broadcast(self, arrays: Sequence[Any]) -> list[Any]:
        return list(arrays)

    def gather_text(self, text: str) -> list[str]:
        return [text]

    def barrier(self) -> None:
        return None

    def abort(self, code: int) -> None:
        os._exit(code)

    def versions(self) -> dict[str, str]:
        return {}


def build(spec: RunSpec, ranks: Ranks, device: str) -> NoExchange:
    return NoExchange()
