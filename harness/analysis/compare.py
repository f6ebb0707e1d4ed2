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
from harness.catalog import WORKLOADS
from harness.errors import UserError, nearest
from harness.model.columns import MUST_MATCH
from harness.model.job import JobState

#: Beside what must match: what else may explain a difference.
CONDITIONS = (*MUST_MATCH, "os", "python_version", "harness_version", "git_commit")
#: Points alike in these, and in their workload's options, have the same ceiling: the best rate to rely on there.
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
        """``better``, ``worse``, ``not resolvable``, ``no ratio`` (a side is 0) or ``do not rely on it``."""
        if not self.trusted:
            return "do not rely on it"
        if not math.isfinite(self.ratio.value):
            return "no ratio"
        if not self.ratio.known or not self.ratio.differs_from(1.0):
            return "not resolvable"
        return "better" if self.ratio.value > 1 else "worse"


@dataclass(frozen=True)
class Comparison:
    """``overall``: geometric mean of the trusted ratios, its interval over the points. ``only_first`` and
    ``only_second`` were tried on that side alone; ``valueless`` were on both, and a side gave no value."""

    first: Side
    second: Side
    pairs: tuple[Pair, ...]
    overall: Estimate
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    valueless: tuple[str, ...]
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
    runs = {point: table.loc[list(r.rows)] for point, r in results.items()}
    values = {point: _estimate(r, runs[point], metric) for point, r in results.items()}
    ceilings: dict[tuple[Any, ...], float] = {}
    for result in results.values():
        if result.trusted:
            ceilings[_trained(result)] = max(ceilings.get(_trained(result), 0.0), result.rate.value)
    normalised = {p: _normalised(r, runs[p], ceilings) for p, r in results.items() if r.runs}
    conditions = {c: tuple(sorted({str(v) for v in counted[c].dropna()})) for c in CONDITIONS}
    return Side(name, cluster, results, values, normalised, conditions)


def _estimate(result: PointResult, runs: pd.DataFrame, metric: str) -> Estimate:
    if metric == "images_per_s":
        return result.rate
    values = [float(v) for v in runs[metric].dropna()]
    if any(v <= 0 for v in values):
        # shares and times may be 0, which has no logarithm: the mean, and no interval
        return Estimate(sum(values) / len(values), math.nan, 0.0, len(values), "none")
    return stats.between_runs(values)


def _trained(result: PointResult) -> tuple[Any, ...]:
    """What points have in common that have the same ceiling."""
    spec = WORKLOADS.get(str(result.axes.get("workload")))
    options = (f"options.{name}" for name in (spec.options if spec else ()))
    return tuple(str(result.axes.get(axis)) for axis in (*CEILING_AXES, *options))


def _normalised(result: PointResult, runs: pd.DataFrame, ceilings: Mapping[tuple[Any, ...], float]) -> dict[str, float]:
    """images/s per core, GPU and watt, and share of the cluster's own ceiling; NaN where there is no such thing."""
    rate, first = result.rate.value, runs.iloc[0]
    found: dict[str, float] = {}
    for name, column in (("per_core", "cores_requested"), ("per_gpu", "gpus_requested")):
        count = plain(first[column])
        found[name] = rate / count if count else math.nan
    found["per_watt"] = float(runs["images_per_joule"].astype(float).mean())
    return found | {"of_ceiling": rate / ceilings.get(_trained(result), math.nan)}


def compare(first: Side, second: Side, higher_is_better: bool) -> Comparison:
    """Join two sides by point id.

    Raises:
        UserError: where no point was measured on both.
    """
    shared = [point for point in first.results if point in second.results]
    pairs = [_pair(point, first, second, higher_is_better) for point in shared]
    pairs = [pair for pair in pairs if math.isfinite(pair.first.value) and math.isfinite(pair.second.value)]
    if not pairs and shared:
        raise UserError(
            f"{first.name} and {second.name} have {len(shared)} points in common, and none gave a value on both "
            f"sides: see `harness check {first.name}` and `harness check {second.name}`"
        )
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
        tuple(p for p in first.results if p not in second.results),
        tuple(p for p in second.results if p not in first.results),
        tuple(p for p in shared if p not in joined),
        {c: (first.conditions[c], v) for c, v in second.conditions.items() if v != first.conditions[c]},
    )


def _pair(point: str, first: Side, second: Side, higher_is_better: bool) -> Pair:
    a, b = first.values[point], second.values[point]
    trusted = first.results[point].trusted and second.results[point].trusted
    ratio = oriented(b, a, higher_is_better) if a.value > 0 and b.value > 0 else UNKNOWN
    return Pair(point, first.results[point], a, b, ratio, trusted)


def oriented(new: Estimate, old: Estimate, higher_is_better: bool) -> Estimate:
    """new / old, or old / new where lower is better."""
    above, below = (new, old) if higher_is_better else (old, new)
    return stats.ratio(above, below) if below.value > 0 else UNKNOWN
