"""Step traces of all runs for the report, thinned so that slow steps stay visible and the page stays small."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from harness.analysis.stats import Floats
from harness.layout import CampaignLayout

#: Points of all traces of a page together, and of one trace at least and at most.
MOST_ALL, LEAST_ONE, MOST_ONE = 400_000, 60, 1000
_COLUMNS = ["point_id", "repeat", "attempt", "rank", "step", "part", "begin_s", "end_s", "occupancy"]


def step_traces(layout: CampaignLayout, runs: int) -> Mapping[tuple[str, int, int], dict[str, Any]]:
    """(point, repeat, attempt) → {step, ms, occupancy, steady_from, of} of rank 0; empty without recorded steps."""
    if not layout.steps_parquet.is_file():
        return {}
    steps = pd.read_parquet(layout.steps_parquet, columns=_COLUMNS, filters=[("rank", "==", 0)])
    most = int(min(max(MOST_ALL / max(runs, 1), LEAST_ONE), MOST_ONE))
    groups = steps.groupby(["point_id", "repeat", "attempt"], sort=False)
    return {(str(p), int(r), int(a)): _trace(part.sort_values("step"), most) for (p, r, a), part in groups}


def _trace(part: pd.DataFrame, most: int) -> dict[str, Any]:
    begin, end = part["begin_s"].to_numpy(float), part["end_s"].to_numpy(float)
    milliseconds = 1000 * np.diff(end, prepend=begin[0])
    kept = thinned(milliseconds, most)
    occupancy = part["occupancy"].to_numpy(float)
    steady = part.loc[part["part"] == "steady", "step"]
    return {
        "step": [int(step) for step in part["step"].to_numpy()[kept]],
        "ms": [float(f"{value:.4g}") for value in milliseconds[kept]],
        "occupancy": [v if math.isfinite(v) else None for v in occupancy[kept]] if np.isfinite(occupancy).any() else [],
        "steady_from": int(steady.iloc[0]) if len(steady) else None,
        "of": len(part),
    }


def thinned(values: Floats, most: int) -> list[int]:
    """Places of at most ``most`` values in order: the smallest and the largest of each of ``most / 2`` equal parts."""
    if len(values) <= most:
        return list(range(len(values)))
    edges = np.linspace(0, len(values), most // 2 + 1).astype(int)
    kept = set()
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        kept |= {low + int(np.argmin(values[low:high])), low + int(np.argmax(values[low:high]))}
    return sorted(kept)
