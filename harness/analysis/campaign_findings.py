"""What only the runs of a campaign together can show: drift, mixed caches, memory per worker, what was tried. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats as distributions

from harness.analysis import findings, stats
from harness.analysis.capacity import comparable, unlike_most
from harness.analysis.findings import Finding
from harness.analysis.points import PointResult
from harness.analysis.scaling import axis_word, label
from harness.model.columns import AXIS_COLUMNS
from harness.model.job import JobState

#: Change of a canary's rate, or of all repeats over a campaign, that is worth a word.
DRIFT_LIMIT = 0.05
#: A run that read this share of its bytes from storage was cold, below the second one warm.
COLD_SHARE, WARM_SHARE = 0.5, 0.05
#: Memory with the most workers over that with the fewest.
MEMORY_FACTOR = 1.5
#: A rate this much higher counts as help, where it is told apart from chance.
HELP = 1.05
#: Share of the best rate that is enough to be proposed.
ENOUGH = 0.95


@dataclass(frozen=True)
class CampaignFinding:
    """A finding and the points it concerns."""

    finding: Finding
    point_ids: tuple[str, ...]


def campaign_findings(table: pd.DataFrame, results: Sequence[PointResult]) -> list[CampaignFinding]:
    """Findings on a campaign's table of runs and the results of its points."""
    done = table[(table["state"] == JobState.SUCCEEDED.value) & table["images_per_s"].notna()]
    found = [*_canaries(done), *_drift(done), *_mixed_caches(done), *_memory(results), *_unlike(results)]
    return sorted(found, key=lambda one: one.finding.code)


def _canaries(done: pd.DataFrame) -> Iterator[CampaignFinding]:
    """The first and the last run of one allocation, where they are runs of one point."""
    for job, runs in done[done["job_id"].notna()].groupby("job_id"):
        ordered = runs.sort_values("started_unix_s")
        first, last = ordered.iloc[0], ordered.iloc[-1]
        if len(ordered) < 2 or first["point_id"] != last["point_id"] or not _both_steady(first, last):
            continue
        change = float(last["images_per_s"]) / float(first["images_per_s"]) - 1
        apart = (
            first["images_per_s_high"] < last["images_per_s_low"]
            or last["images_per_s_high"] < first["images_per_s_low"]
        )
        if abs(change) > DRIFT_LIMIT and bool(apart):
            advice = "Other load on the node, or its temperature: measure again on an exclusive node."
            finding = findings.make("canary_drift", advice, job=str(job), change=f"{change:+.0%}")
            yield CampaignFinding(finding, tuple(dict.fromkeys(ordered["point_id"])))


def _both_steady(first: Any, last: Any) -> bool:
    return (
        first["steady"] is not pd.NA and bool(first["steady"]) and last["steady"] is not pd.NA and bool(last["steady"])
    )


def _drift(done: pd.DataFrame) -> Iterator[CampaignFinding]:
    """Whether repeats, each against its point's mean, depend on when they ran (Spearman's rank correlation)."""
    times, logs, points = [], [], []
    for point, runs in done[done["started_unix_s"].notna()].groupby("point_id"):
        if len(runs) > 1:
            rates = np.log(runs["images_per_s"].to_numpy(dtype=float))
            logs += list(rates - rates.mean())
            times += list(runs["started_unix_s"].to_numpy(dtype=float))
            points.append(str(point))
    if len(logs) < 6 or len(set(times)) < 2 or float(np.ptp(logs)) < 1e-9:
        return
    correlation = distributions.spearmanr(times, logs)
    slope = float(np.polyfit(distributions.rankdata(times), logs, 1)[0]) * len(logs)
    if float(correlation.pvalue) < 0.01 and abs(slope) > DRIFT_LIMIT:
        advice = (
            "Other load, heat, or a cache that filled: order is random, so points stay comparable; spreads are wider."
        )
        finding = findings.make("machine_drift", advice, change=f"{math.expm1(slope):+.0%}", runs=len(logs))
        yield CampaignFinding(finding, tuple(points))


def _mixed_caches(done: pd.DataFrame) -> Iterator[CampaignFinding]:
    """Repeats of a point of unknown cache state of which some read from storage and others did not."""
    unknown = done[done["cache_state"].fillna("unknown") == "unknown"]
    for point, runs in unknown.groupby("point_id"):
        read = runs["read_bytes"].dropna().to_numpy(dtype=float)
        most = float(read.max()) if len(read) > 1 else 0.0
        cold, warm = int((read >= COLD_SHARE * most).sum()), int((read <= WARM_SHARE * most).sum())
        if most > 10e6 and cold and warm:
            advice = "Sweep `cache: [cold, warm]`; a mean over both is neither."
            yield CampaignFinding(findings.make("cold_and_warm_mixed", advice, cold=cold, warm=warm), (str(point),))


def _unlike(results: Sequence[PointResult]) -> Iterator[CampaignFinding]:
    """Points that are compared with each other, and ran with other versions, hardware or data than most of them."""
    for members in comparable([r for r in results if r.runs and r.variant == 0]):
        told: dict[str, list[str]] = {}
        for point, difference in unlike_most(members).items():
            told.setdefault(difference, []).append(point)
        for difference, points in told.items():
            advice = (
                "A speed-up between such points is not that of the axis: measure them anew (`harness run --fresh`)."
            )
            finding = findings.make("conditions_differ", advice, points=len(points), difference=difference)
            yield CampaignFinding(finding, tuple(points))


def _memory(results: Sequence[PointResult]) -> Iterator[CampaignFinding]:
    """Memory against the number of workers, all else equal."""
    for series in _along(results, "workers"):
        known = [(r, r.means["rss_max_bytes"]) for r in series if r.means.get("rss_max_bytes")]
        if len(known) < 2 or known[-1][1] <= MEMORY_FACTOR * known[0][1]:
            continue
        few, many = (int(r.axes["workers"]) for r in (known[0][0], known[-1][0]))
        # memory is a node's, workers are a rank's
        ranks = int(known[0][0].axes.get("ranks_per_node") or 1)
        each = (known[-1][1] - known[0][1]) / (many - few) / ranks
        advice = "Ask for memory accordingly. Pages that workers share count once for each."
        finding = findings.make("memory_grows_with_workers", advice, bytes_per_worker=round(each), workers=[few, many])
        yield CampaignFinding(finding, tuple(r.point_id for r, _ in known))


#: code → axes whose variation may mend it
_REMEDIES = dict.fromkeys(
    findings.INPUT_BOUND, ("workers", "parallel_threads", "cpu_cores", "prefetch", "storage", "encoding", "cache")
) | {"threads_oversubscribed": ("parallel_threads", "workers", "cpu_cores")}
#: In which order those that a loader has are proposed.
_LOADER_AXES = ("workers", "parallel_threads", "storage", "encoding", "prefetch")


def advised(finding: Finding, result: PointResult, results: Sequence[PointResult]) -> Finding:
    """The finding with its advice in the light of what this campaign has tried already."""
    if finding.code == "memory_holds_data":
        return _with_caches(finding, result, results)
    tried: list[str] = []
    helped: list[str] = []
    unsure: list[str] = []
    for axis in _REMEDIES.get(finding.code, ()):
        for series in _around(result, results, axis):
            known = [r for r in series if r.trusted or r is result]
            if len(known) < 2:
                continue  # what it was tried with is not to be relied on: neither helped nor not
            most = max(r.rate.value for r in known)
            # the series rises along its axis: no more is proposed than it takes
            best = next(r for r in known if r.rate.value >= ENOUGH * most)
            gain = stats.ratio(best.rate, result.rate)
            if gain.value <= HELP:
                tried.append(axis)
            else:
                value = label({axis: best.axes.get(axis)})
                (helped if gain.differs_from(1.0) else unsure).append(f"{value} (× {gain.value:.2f})")
    if not tried and not helped and not unsure:
        return finding
    words = [f"All else equal, it ran faster here with {' or '.join(helped)}: use that."] if helped else []
    words += [f"Perhaps by chance it ran faster with {' or '.join(unsure)}: repeat."] if unsure else []
    words += [f"Already varied without help: {', '.join(map(axis_word, tried))}."] if tried else []
    if not helped and not unsure and finding.code in findings.INPUT_BOUND:
        left = [axis for axis in _LOADER_AXES if axis not in tried]
        words.append(
            f"Left to try: {', '.join(map(axis_word, left))}." if left else "Preparation itself is what takes the time."
        )
    return replace(finding, advice=" ".join(words))


def _with_caches(finding: Finding, result: PointResult, results: Sequence[PointResult]) -> Finding:
    """Where the campaign has measured the point cold and warm, the advice to do so would be none."""
    states = {r.axes.get("cache") for series in _around(result, results, "cache") for r in series}
    if not {"cold", "warm"} <= states:
        return finding
    return replace(finding, advice="Cold and warm were measured here, too: rest on those points, not on this one.")


def _around(result: PointResult, results: Sequence[PointResult], axis: str) -> list[list[PointResult]]:
    """Results that differ from this one in ``axis`` alone, itself among them; none where it stands alone."""
    return [series for series in _along(results, axis) if result.point_id in {r.point_id for r in series}]


def _along(results: Sequence[PointResult], axis: str) -> list[list[PointResult]]:
    """Groups of measured results that differ in ``axis`` alone, in its order."""
    groups: dict[tuple[Any, ...], list[PointResult]] = {}
    names = [column.name for column in AXIS_COLUMNS if column.name != axis]
    for result in results:
        if result.runs and result.variant == 0:
            options = tuple((k, str(v)) for k, v in sorted(result.axes.items()) if k.startswith("options."))
            key = (*(str(result.axes.get(name)) for name in names), options)
            groups.setdefault(key, []).append(result)
    ordered = (
        sorted(group, key=lambda r: (str(type(r.axes.get(axis))), r.axes.get(axis) or 0)) for group in groups.values()
    )
    return [group for group in ordered if len({str(r.axes.get(axis)) for r in group}) > 1]
