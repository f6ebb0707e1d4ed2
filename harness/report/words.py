"""What a campaign found, in sentences, and what to run next. Claims only what its intervals and findings allow."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from harness.analysis import findings, stats
from harness.analysis.points import PointResult, point_results
from harness.analysis.scaling import (
    PREFERRED,
    RESOURCES,
    Series,
    Step,
    amount,
    axis_word,
    label,
    naming_axes,
    numeric_axes,
    primary_axis,
    series_along,
    series_axes,
)
from harness.analysis.stats import Estimate
from harness.model.campaign import Campaign
from harness.report.grid import text
from harness.report.numbers import number, percent, with_interval
from harness.report.request import still_rising

#: More results than this are summed up.
MOST_SENTENCES = 8
#: An interval that ends this near to 1 says that there is no difference to care about.
NEGLIGIBLE = 0.1
#: More repeats than this are not proposed.
MOST_REPEATS = 20
#: Share of the last point's rate at which an earlier one is worth naming.
ENOUGH = 0.95
#: Share that is as much, to the digits shown.
AS_MUCH = 0.995
#: Axes whose variation may help where training waits for data.
LOADER_AXES = ("workers", "parallel_threads", "prefetch", "storage", "encoding")
#: Share of the growth of an axis that arrived as rate, above which more of it is worth a run.
WORTH_MORE = 0.7


def summary(table: pd.DataFrame, campaign: Campaign) -> list[str]:
    """Sentences: what was found, what is doubtful, what to run next."""
    results = [r for r in point_results(table) if r.variant == 0]
    measured = [r for r in results if r.runs]
    if not measured:
        return [f"Nothing was measured: {_states(results) or 'no run has been tried'}.", *_next(results, [], campaign)]
    axis = primary_axis(measured, campaign.varied)
    series = series_along(measured, campaign.varied, axis) if axis else []
    sentences = _series_sentences([one for one in series if len(one.steps) > 1])
    if not sentences:
        sentences = _plain_sentences(measured, campaign)
    sentences += _other_axes(measured, campaign, axis)
    sentences += _contrasts(measured, campaign, axis)
    sentences += _doubts(measured)
    if broken := _states([r for r in results if not r.runs]):
        sentences.append(f"Not measured: {broken}.")
    return sentences + _next(results, series, campaign)


def _of(key: dict[str, object]) -> str:
    """``resnet20_cifar10 in torch, 4 workers``."""
    workload, framework = key.get("workload"), key.get("framework")
    rest = {k: v for k, v in key.items() if k not in ("workload", "framework")}
    head = " in ".join(str(v) for v in (workload, framework) if v not in (None, "none"))
    return ", ".join(part for part in (head, label(rest) if rest else "") if part)


def _series_sentences(series: Sequence[Series]) -> list[str]:
    """A sentence per series; where they are many, their range and the ends of it."""
    if len(series) <= MOST_SENTENCES:
        return [_series_sentence(one) for one in series]
    ordered = sorted(series, key=lambda one: one.steps[-1].speedup.value)
    low, middle, high = (ordered[i].steps[-1].speedup.value for i in (0, len(ordered) // 2, -1))
    axis = axis_word(series[0].axis)
    overall = f"{len(series)} series along {axis}: from their first to their last point the rate changes by a factor"
    return [
        f"{overall} of {number(low, 3)} to {number(high, 3)} (median {number(middle, 3)}). The ends of this range:",
        _series_sentence(ordered[0]),
        _series_sentence(ordered[-1]),
    ]


def _series_sentence(series: Series) -> str:
    base, last = series.steps[0], series.steps[-1]
    names = {k: base.result.axes.get(k) for k in ("workload", "framework")}
    subject = _of(dict(series.key)) or _of(names)
    against = amount(series, base) if series.beside else text(base.x)
    claim = f"{amount(series, last)} gives {with_interval(last.speedup)} times the images/s of {against}"
    if series.beside or (series.axis in RESOURCES and last.x != 1):
        claim = claim.replace(" gives ", " give ", 1)
    if doubted := [step for step in (base, last) if not step.result.trusted]:
        return f"{subject}: {claim}, but do not rely on it: {_why([step.result for step in doubted])}."
    if not last.speedup.known:
        return f"{subject}: {claim}; no interval can be given from {_runs(base, last)}."
    if min(base.result.runs, last.result.runs) > 1 and _negligible(last.speedup):
        return f"{subject}: {claim}: no difference of more than {_percents(last.speedup)} ({_runs(base, last)})."
    if not last.speedup.differs_from(1.0):
        return f"{subject}: {claim}: not resolvable from {_runs(base, last)}.{_needed(base, last)}"
    return f"{subject}: {claim} ({_runs(base, last)}{_efficiency(last)}){_best(series, last)}."


def _farthest(quotient: Estimate) -> float:
    """How far from 1 the interval's ends are, at most."""
    return max(quotient.high - 1, 1 - quotient.low)


def _percents(quotient: Estimate) -> str:
    """:func:`_farthest`, rounded up, so that nothing is denied that the interval allows."""
    return f"{math.ceil(100 * _farthest(quotient) - 1e-9)}%"


def _negligible(quotient: Estimate) -> bool:
    return quotient.known and not quotient.differs_from(1.0) and _farthest(quotient) <= NEGLIGIBLE


def _runs(base: Step, last: Step) -> str:
    few = min(base.result.runs, last.result.runs)
    if few == 1:
        return "one run each, so the spread between runs is unknown"
    return f"{few} runs each" if base.result.runs == last.result.runs else f"{few} runs or more each"


def _needed(base: Step, last: Step) -> str:
    runs = min(base.result.runs, last.result.runs)
    more = stats.repeats_to_resolve(last.speedup, runs)
    few = more is not None and more <= MOST_REPEATS
    if few:
        return f" With this spread, {more} repeats would tell."
    return f" With this spread it would take more than {MOST_REPEATS} repeats to tell."


def _efficiency(last: Step) -> str:
    return f"; efficiency {percent(last.efficiency)}" if math.isfinite(last.efficiency.value) else ""


def _best(series: Series, last: Step) -> str:
    best = max((step for step in series.steps if step.result.trusted), key=lambda step: step.result.rate.value)
    drop = stats.ratio(best.result.rate, last.result.rate)
    if best is last or not drop.differs_from(1.0):
        return _enough(series, last)
    return f"; the best is {text(best.x)}, {with_interval(drop)} times as fast as {text(last.x)}"


def _enough(series: Series, last: Step) -> str:
    """The first point after which there is hardly anything to gain, where it is neither end."""
    shares = [(step, step.result.rate.value / last.result.rate.value) for step in series.steps if step.result.trusted]
    step, share = next(((step, share) for step, share in shares if share >= ENOUGH), (last, 1.0))
    if step is last or step is series.steps[0]:
        return ""
    return f"; {text(step.x)} gave {share:.0%} of that" if share < AS_MUCH else f"; {text(step.x)} gave as much"


def _other_axes(measured: Sequence[PointResult], campaign: Campaign, primary: str | None) -> list[str]:
    """What the further knobs did, at the largest value of the primary one."""
    top = max((r.axes[primary] for r in measured if r.axes[primary] is not None), default=None) if primary else None
    sentences = []
    for axis in numeric_axes(measured, campaign.varied):
        series = [one for one in series_along(measured, campaign.varied, axis) if one.key.get(primary or "") == top]
        if axis in PREFERRED and axis != primary:
            sentences += _series_sentences([one for one in series if len(one.steps) > 1])
    return sentences


def _plain_sentences(measured: Sequence[PointResult], campaign: Campaign) -> list[str]:
    names = naming_axes(measured, campaign.varied)
    fastest = sorted(measured, key=lambda r: r.rate.value, reverse=True)
    sentences = [_plain_sentence(result, names) for result in fastest[:MOST_SENTENCES]]
    if len(fastest) > MOST_SENTENCES:
        sentences.append(f"These are the fastest of {len(fastest)} points.")
    return sentences


def _plain_sentence(result: PointResult, names: Sequence[str]) -> str:
    subject = _of({name: result.axes.get(name) for name in names if result.axes.get(name) is not None})
    doubt = "" if result.trusted else f", but do not rely on it: {_why([result])}"
    return f"{subject}: {with_interval(result.rate)} images/s from {result.runs} run{'s' * (result.runs > 1)}{doubt}."


def _contrasts(measured: Sequence[PointResult], campaign: Campaign, axis: str | None) -> list[str]:
    """TensorFlow against torch and the like, where all else is equal, at the largest value of the primary axis."""
    if "framework" not in series_axes(measured, campaign.varied, axis):
        return []
    others = [name for name in campaign.varied if name not in ("framework",)]
    groups: dict[tuple[object, ...], list[PointResult]] = {}
    for result in measured:
        groups.setdefault(tuple(result.axes.get(name) for name in others), []).append(result)
    top = max((r.axes[axis] for r in measured), default=None) if axis else None
    sentences = []
    for values, group in groups.items():
        shared = dict(zip(others, values, strict=True))
        if len(group) != 2 or (axis and shared.get(axis) != top):
            continue
        fast, slow = sorted(group, key=lambda r: r.rate.value, reverse=True)
        quotient = stats.ratio(fast.rate, slow.rate)
        if fast.trusted and slow.trusted and quotient.differs_from(1.0):
            where = _of({k: v for k, v in shared.items() if k in series_axes(measured, campaign.varied, None)})
            pair = f"{fast.axes['framework']} is {with_interval(quotient)} times as fast as {slow.axes['framework']}"
            sentences.append(f"{where}: {pair}.")
    return sentences


def _why(results: Sequence[PointResult]) -> str:
    reasons = [f.message for r in results for f in r.findings if f.severity != "info"]
    return "; ".join(dict.fromkeys(reasons)) or "not every run was steady"


def _doubts(measured: Sequence[PointResult]) -> list[str]:
    unsteady = [r for r in measured if r.unsteady]
    drained = [r for r in measured if any(f.code == "buffer_drain" for f in r.findings)]
    waiting = [r for r in measured if any(f.code in findings.INPUT_BOUND for f in r.findings)]
    sentences = []
    if unsteady:
        sentences.append(
            f"{_points(unsteady, measured)} did not reach a steady state; nothing is recommended from them."
        )
    if drained:
        sentences.append(
            f"{_points(drained, measured)} drained a buffer filled during start-up; "
            "the rates given are those after the drain."
        )
    if waiting:
        sentences.append(f"{_points(waiting, measured)} waited for data: there the input pipeline limits training.")
    return sentences


def _points(some: Sequence[PointResult], of: Sequence[PointResult]) -> str:
    return f"{len(some)} of {len(of)} points"


def _states(results: Sequence[PointResult]) -> str:
    counts = Counter(state for result in results for state, n in result.states.items() for _ in range(n))
    return ", ".join(f"{n} {state}" for state, n in sorted(counts.items()))


def _worth_more(series: Series) -> bool:
    """Whether the next larger value is worth a run: the rate still rose, and in proportion to what was added."""
    if series.axis not in RESOURCES or len(series.steps) < 2 or not still_rising(series.steps):
        return False
    base, last = series.steps[0], series.steps[-1]
    return last.speedup.value * base.x > WORTH_MORE * last.x


def _next(results: Sequence[PointResult], series: Sequence[Series], campaign: Campaign) -> list[str]:
    """The most useful next run, first things first."""
    failed = [r for r in results if any(state in r.states for state in ("FAILED", "LOST", "TIMED_OUT"))]
    if failed:
        name = shlex.quote(campaign.name)
        return [f"Next: see why with `harness check {name}`, then `harness retry {name}`."]
    if any(r.unsteady for r in results):
        return ["Next: give the sweep more timed steps (`steps: {timed: …}`), so that all points become steady."]
    ends = [s.steps[-1].speedup for s in series if len(s.steps) > 1]
    unresolved = [end for end in ends if not end.differs_from(1.0) and not _negligible(end)]
    few = min((r.runs for r in results if r.runs), default=0)
    if few and few < 3 and (unresolved or few == 1):
        return [f"Next: repeat (`repeats: {max(3, few + 2)}` in the sweep); what is measured already is kept."]
    growing = [one for one in series if _worth_more(one)]
    if growing:
        top = max(step.x for one in growing for step in one.steps)
        unit = axis_word(growing[0].axis)
        return [f"Next: try more than {text(top)} {unit}: {len(growing)} of {len(series)} series still scale there."]
    fastest = max((r for r in results if r.runs), key=lambda r: r.rate.value, default=None)
    left = [name for name in LOADER_AXES if name not in campaign.varied]
    if fastest and left and any(f.code in findings.INPUT_BOUND for f in fastest.findings):
        return [f"Next: vary {' or '.join(left)}, since training waits for data at the fastest point, too."]
    return []
