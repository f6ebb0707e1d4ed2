"""Repeats → points: a result per point, with its interval over repeats. Runs under unlike conditions stay apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from harness.analysis import findings, stats
from harness.analysis.evidence import compact_json
from harness.analysis.findings import Finding
from harness.analysis.stats import Estimate
from harness.catalog import PIPELINES, WORKLOADS
from harness.model.columns import AXIS_COLUMNS, MUST_MATCH
from harness.model.job import JobState

#: Of the normal law at 97.5 %.
_NORMAL_QUANTILE = 1.959963984540054
#: Columns whose mean over a point's runs is kept with its result.
MEAN_COLUMNS = (
    "step_mean_s",
    "wait_share",
    "copy_share",
    "compute_share",
    "exchange_share",
    "au_percent",
    "cores_used",
    "rss_max_bytes",
)


@dataclass(frozen=True)
class PointResult:
    """What the repeats of a point say together.

    ``axes`` holds every axis and option by column name. ``conditions`` are the must-match columns of its runs;
    a point whose runs differ there has several results, of which ``variant`` 0 has the most runs. ``states`` counts
    the states of the attempts that count, ``attempts`` those of all, also of such as were tried again. ``findings``
    concern the runs that the numbers come from, ``failures`` the runs that gave none. ``means`` holds means over the
    runs of :data:`MEAN_COLUMNS`, where known. ``rows`` are the labels of the runs that the numbers come from, in the
    table of runs.
    """

    point_id: str
    variant: int
    axes: Mapping[str, Any]
    conditions: Mapping[str, Any]
    rate: Estimate
    consumed: Estimate
    time: Estimate
    runs: int
    unsteady: int
    spread: float
    states: Mapping[str, int]
    findings: tuple[Finding, ...]
    failures: tuple[Finding, ...]
    means: Mapping[str, float] = field(default_factory=dict)
    attempts: Mapping[str, int] = field(default_factory=dict)
    rows: tuple[Any, ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether conclusions may rest on it: measured, every run steady, no error found."""
        doubtful = {"not_steady", *findings.CORES, "cores_not_achieved"}
        return (
            self.runs > 0
            and not self.unsteady
            and not any(f.severity == "error" or f.code in doubtful for f in self.findings)
        )


def failed_and_ended(states: Mapping[str, int]) -> tuple[int, int]:
    """How many attempts failed or had to be stopped at their walltime, and these with those that succeeded."""
    failed = sum(states.get(state.value, 0) for state in (JobState.FAILED, JobState.TIMED_OUT))
    return failed, failed + states.get(JobState.SUCCEEDED.value, 0)


def point_results(table: pd.DataFrame) -> list[PointResult]:
    """Results of every point with at least one attempt, sorted by the axes."""
    counting = table[table["counts"].fillna(False).astype(bool)]
    attempts = {
        str(point): Counter(str(state) for state in states) for point, states in table.groupby("point_id")["state"]
    }
    results = []
    for point, runs in counting.groupby("point_id", sort=False):
        succeeded = runs[(runs["state"] == JobState.SUCCEEDED.value) & runs["images_per_s"].notna()]
        groups = [group for _, group in succeeded.groupby(list(MUST_MATCH), dropna=False, sort=False)]
        groups.sort(key=len, reverse=True)
        for variant, group in enumerate(groups or [succeeded]):
            result = _result(runs, group, variant, differing_conditions(groups))
            # what failed belongs to no variant, and is told with the first
            failures = () if variant else tuple(_run_findings(runs.drop(succeeded.index)))
            results.append(replace(result, failures=failures, attempts=dict(attempts[str(point)])))
    return sorted(results, key=lambda result: sort_key(result.axes.values()))


def like_jobs(results: Sequence[PointResult]) -> list[PointResult]:
    """Those that a job can be like, or all where there are none: rungs of a ladder whose batch is held train nothing,
    and nobody asks for cores or workers for them."""
    return [r for r in results if r.axes.get("feed") in (None, "pipeline")] or list(results)


def differing_conditions(groups: Sequence[pd.DataFrame]) -> dict[str, list[str]]:
    """Must-match columns in which groups of runs of one point differ, with their values."""
    if len(groups) < 2:
        return {}
    merged = pd.concat(groups)
    return {
        name: sorted({str(plain(value)) for value in merged[name]})
        for name in MUST_MATCH
        if merged[name].nunique(dropna=False) > 1
    }


def _result(runs: pd.DataFrame, group: pd.DataFrame, variant: int, differing: Mapping[str, list[str]]) -> PointResult:
    first = (group if len(group) else runs).iloc[0]
    names = [column.name for column in AXIS_COLUMNS] + [n for n in runs.columns if n.startswith("options.")]
    rates = [float(value) for value in group["images_per_s"]]
    rate = stats.between_runs(rates, [within_estimate(row) for _, row in group.iterrows()])
    return PointResult(
        point_id=str(first["point_id"]),
        variant=variant,
        axes={name: plain(first[name]) for name in names} | _default_options(first, names),
        conditions={name: plain(first[name]) for name in MUST_MATCH},
        rate=rate,
        consumed=stats.between_runs([float(value) for value in group["consumed_per_s"]]),
        time=stats.between_runs([float(value) for value in group["time_s"]]),
        runs=len(group),
        unsteady=int((~group["steady"].fillna(False).astype(bool)).sum()),
        spread=stats.spread(rates),
        states=dict(Counter(str(state) for state in runs["state"])),
        findings=tuple(_point_findings(group, differing, stats.spread(rates)) + _run_findings(group)),
        failures=(),
        rows=tuple(group.index),
        means={name: float(group[name].mean()) for name in MEAN_COLUMNS if group[name].notna().any()},
    )


def _default_options(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Options that the point leaves at the catalog's default, with that value; not those that it does not have."""
    known = [WORKLOADS.get(str(plain(row["workload"]))), PIPELINES.get(str(plain(row["pipeline"])))]
    defaults = {f"options.{n}": option.default for spec in known if spec for n, option in spec.options.items()}
    unset = [name for name in names if name in defaults and plain(row[name]) is None]
    return {
        name: text if isinstance(text := defaults[name], str | int | float) else compact_json(text) for name in unset
    }


def within_estimate(row: Mapping[str, Any]) -> Estimate:
    """A run's own rate with the interval that the table holds.

    The degrees of freedom are not kept there, so the standard error is that of a normal law with this interval.
    """
    value, low, high = (float(row[name]) for name in ("images_per_s", "images_per_s_low", "images_per_s_high"))
    if not (low > 0 and math.isfinite(high)):
        return Estimate(value, math.nan, 0.0, 0, "none")
    return Estimate(value, math.log(high / low) / 2 / _NORMAL_QUANTILE, math.inf, 1, "within")


def _run_findings(runs: pd.DataFrame) -> list[Finding]:
    return findings.unique([finding for text in runs["findings"] for finding in findings.parse(text)])


def _point_findings(group: pd.DataFrame, differing: Mapping[str, list[str]], spread: float) -> list[Finding]:
    found = []
    if differing:
        advice = "Runs under different conditions are shown apart; `harness run --fresh` measures all of them anew."
        found.append(findings.make("provenance_differs", advice, **differing))
    if len(group) == 1:
        found.append(findings.make("one_repeat", "Give the sweep `repeats: 3` or more."))
    if spread > findings.SPREAD_LIMIT:
        advice = "Look for other load on the machine; repeat."
        found.append(findings.make("spread_between_runs", advice, spread=spread, runs=len(group)))
    return found


def plain(value: Any) -> Any:
    """A cell as a plain Python value, None for NA."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if hasattr(value, "item") else value


def sort_key(values: Any) -> tuple[Any, ...]:
    """A key that sorts numbers before texts and unknown first, whatever is mixed."""
    return tuple(
        (0, 0.0, "") if v is None else (1, float(v), "") if isinstance(v, bool | int | float) else (2, 0.0, str(v))
        for v in values
    )
