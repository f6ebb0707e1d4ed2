"""Values that the catalog gives where a sweep gives none: a workload's own batch size, data set, pipeline and so on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.catalog import FRAMEWORKS, WORKLOADS


def fill(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` with the workload's defaults for what is unset. Values already given are kept, fitting or not."""
    filled = dict(values)
    workload = WORKLOADS.get(str(filled.get("workload")))
    if workload is None:
        return filled
    if filled.get("framework") is None:
        filled["framework"] = next((f for f in FRAMEWORKS if f in workload.frameworks), next(iter(workload.frameworks)))
    unset = {
        "model": workload.model,
        "dataset": workload.dataset,
        "pipeline": workload.pipelines.get(filled["framework"]),
        "batch_size": workload.batch_size,
        "comm": "none" if _ranks(filled) == 1 else "mpi4py",
    }
    for axis, value in unset.items():
        if filled.get(axis) is None:
            filled[axis] = value
    return filled


def _ranks(values: Mapping[str, Any]) -> int:
    return int(values.get("nodes", 1)) * int(values.get("ranks_per_node", 1))
