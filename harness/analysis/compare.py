"""Campaigns against each other, or against a stored reference: joined by point id, ratios with intervals. Pure.

A ratio is always written so that above 1 is better, whichever direction the quantity has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.analysis import stats
from harness.analysis.dictionary import BY_NAME
from harness.analysis.points import PointResult, plain, point_results
from harness.analysis.stats import UNKNOWN, Estimate
from harness.errors import UserError, nearest
from harness.model.columns import MUST_MATCH
from harness.model.job import JobState

#: Beside what must match: what else may explain a difference.
CONDITIONS = (*MUST_MATCH, "os", "python_version", "harness_version", "git_commit")
#: Points alike in these have the same ceiling on a cluster: the best rate measured there.
CEILING_AXES = ("workload", "framework", "model", "batch_size", "nodes", "ranks_per_node", "gpus_per_rank", "precision")


@dataclass(frozen=True)
class Side:
    """One campaign's points for a comparison: results and their estimates of the compared column, by point id."""

    name: str
    cluster: str
    results: Mapping[str, PointResult]
    values: Mapping[str, Estimate]
    normalised: Mapping[str, Mapping[str, float]]
    conditions: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Pair:
    """A point on two sides; ``ratio`` above 1: the second is better. ``trusted``: both may be relied on."""

    point_id: str
    result: PointResult
    first: Estimate
    second: Estimate
    ratio: Estimate
    trusted: bool

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, ``not resolvable`` or ``do not rely on it``."""
        if not self.trusted:
            return "do not rely on it"
        if not self.ratio.known or not self.ratio.differs_from(1.0):
            return "not resolvable"
        return "better" if self.ratio.value > 1 else "worse"


@dataclass(frozen=True)
class Comparison:
    """``overall``: geometric mean of the trusted ratios, its interval over the points."""

    first: Side
    second: Side
    pairs: tuple[Pair, ...]
    overall: Estimate
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    differing: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]


def direction(metric: str) -> bool:
    """Whether higher is better in this column of the data dictionary.

    Raises:
        UserError: for a column that does not exist or has no direction.
    """
    directed = [name for name, column in BY_NAME.items() if column.higher_is_better is not None]
    if metric not in directed:
        raise UserError(f"no column {metric!r} in which higher or lower is better; {nearest(metric, directed)}")
    return bool(BY_NAME[metric].higher_is_better)


def side(name: str, cluster: str, table: pd.DataFrame, metric: str) -> Side:
    """A campaign's side of a comparison by the column ``metric``."""
    results = {r.point_id: r for r in point_results(table) if r.variant == 0}
    counted = table[table["counts"].fillna(False).astype(bool) & (table["state"] == JobState.SUCCEEDED.value)]
    by_point = dict(iter(counted.groupby("point_id")))
    values = {point: _estimate(r, by_point.get(point), metric) for point, r in results.items()}
    ceilings: dict[tuple[Any, ...], float] = {}
    for result in results.values():
        if result.runs:
            key = tuple(result.axes.get(axis) for axis in CEILING_AXES)
            ceilings[key] = max(ceilings.get(key, 0.0), result.rate.value)
    normalised = {p: _normalised(r, by_point.get(p), ceilings) for p, r in results.items() if r.runs}
    conditions = {c: tuple(sorted({str(v) for v in counted[c].dropna()})) for c in CONDITIONS}
    return Side(name, cluster, results, values, normalised, conditions)


def _estimate(result: PointResult, runs: pd.DataFrame | None, metric: str) -> Estimate:
    if metric == "images_per_s":
        return result.rate
    values = [] if runs is None else [float(v) for v in runs[metric].dropna()]
    return stats.between_runs(values)


def _normalised(
    result: PointResult, runs: pd.DataFrame | None, ceilings: Mapping[tuple[Any, ...], float]
) -> dict[str, float]:
    """images/s per core, GPU and watt, and share of the cluster's own ceiling; NaN where there is no such thing."""
    rate = result.rate.value
    ceiling = ceilings.get(tuple(result.axes.get(axis) for axis in CEILING_AXES), math.nan)
    found = {"per_core": math.nan, "per_gpu": math.nan, "per_watt": math.nan, "of_ceiling": rate / ceiling}
    if runs is not None and len(runs):
        first = runs.iloc[0]
        for name, column in (("per_core", "cores_requested"), ("per_gpu", "gpus_requested")):
            count = plain(first[column])
            found[name] = rate / count if count else math.nan
        found["per_watt"] = float(runs["images_per_joule"].astype(float).mean())
    return found


def compare(first: Side, second: Side, higher_is_better: bool) -> Comparison:
    """Join two sides by point id.

    Raises:
        UserError: where no point was measured on both.
    """
    shared = [point for point in first.results if point in second.results]
    pairs = [_pair(point, first, second, higher_is_better) for point in shared]
    pairs = [pair for pair in pairs if math.isfinite(pair.ratio.value)]
    if not pairs:
        raise UserError(
            f"{first.name} and {second.name} have no measured point in common: a point is joined by what it measures, "
            "so run the same sweep file on both clusters"
        )
    overall = stats.between_runs([pair.ratio.value for pair in pairs if pair.trusted])
    joined = {pair.point_id for pair in pairs}
    return Comparison(
        first,
        second,
        tuple(pairs),
        overall if overall.n > 1 else UNKNOWN,
        tuple(p for p in first.results if p not in joined),
        tuple(p for p in second.results if p not in joined),
        {c: (first.conditions[c], v) for c, v in second.conditions.items() if v != first.conditions[c]},
    )


def _pair(point: str, first: Side, second: Side, higher_is_better: bool) -> Pair:
    a, b = first.values[point], second.values[point]
    trusted = first.results[point].trusted and second.results[point].trusted
    return Pair(point, first.results[point], a, b, oriented(b, a, higher_is_better), trusted)


def oriented(new: Estimate, old: Estimate, higher_is_better: bool) -> Estimate:
    """new / old, or old / new where lower is better."""
    above, below = (new, old) if higher_is_better else (old, new)
    return stats.ratio(above, below) if below.value > 0 else UNKNOWN
