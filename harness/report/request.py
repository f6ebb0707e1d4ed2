"""What to request, from what was measured alone: the least of a resource that reaches nearly the best measured rate.

No model and no extrapolation: a value that was not measured is never named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from harness.analysis import stats
from harness.analysis.best import chosen_from
from harness.analysis.points import PointResult, like_jobs, point_results
from harness.analysis.scaling import (
    RESOURCES,
    Series,
    Step,
    amount,
    label,
    naming_axes,
    point_label,
    primary_axis,
    series_along,
)
from harness.analysis.stats import Estimate
from harness.model.campaign import Campaign
from harness.report.numbers import with_interval

#: Share of the best measured rate that is enough.
ENOUGH = 0.95
#: Axes that say what is trained: unlike ones are not compared.
TRAINING = ("workload", "framework", "model", "batch_size")
#: Nor are those that no job chooses for its rate: what is read, and what the page cache held.
GIVEN = ("dataset", "cache")
#: What a job asks for or sets, in the order in which less of it is preferred.
KNOBS = ("nodes", "cpu_cores", "ranks_per_node", "workers", "parallel_threads", "prefetch", "storage")
#: The best of so many is likely to owe some of its rate to chance: the interval allows for that, the rate does not.
MANY = 14
#: More series than this are counted, not named.
MOST_SERIES = 8
_ONCE = "From one run each, whose intervals do not know how runs differ: repeat before relying on it"
_ALL_ONCE = "All from one run each, whose intervals do not know how runs differ: repeat before relying on them."
_WIDER = "Wider in brackets than in the table: points chosen among several that may be the best."


@dataclass(frozen=True)
class _Said:
    """One piece of advice, and what is also true of it, which is said once where it is true of several.

    ``name`` tells its series from the others, ``points`` are those that it names; ``rises_at`` is the largest value,
    where the rate still rises there; ``by_chance``: its gain may be none, which no other advice says.
    """

    text: str
    name: str = ""
    points: frozenset[str] = frozenset()
    rises_at: str = ""
    by_chance: bool = False
    once: bool = False
    wider: tuple[str, ...] = ()


def requests(table: pd.DataFrame, campaign: Campaign) -> list[str]:
    """A sentence for each series along the primary resource axis that says more than the one over all series, then what
    holds for several of them; one sentence that says why, where there is none."""
    results = [r for r in like_jobs(point_results(table)) if r.variant == 0]
    axis = primary_axis(results, campaign.varied)
    if axis is None or axis not in RESOURCES:
        return _sentences(*_fastest(results, campaign)) or ["Nothing can be said yet: no point was measured."]
    series = [one for one in series_along(results, campaign.varied, axis) if one.steps]
    said = _least_of_all(results, campaign) + [_request(one) for one in series[:MOST_SERIES]]
    more = []
    if len(series) > MOST_SERIES:
        more = [f"… and {len(series) - MOST_SERIES} more series: filter the table of points for yours."]
    return _sentences(said, more) or ["Nothing can be said yet: no point was measured."]


def _sentences(said: Sequence[_Said], more: Sequence[str]) -> list[str]:
    """Each thing once: advice that names no further point is left out, a remark on several stands below them."""
    told = [one for place, one in enumerate(said) if not _repeats(one, said[:place])]
    advice = [one for one in told if one.points]
    rising = [one for one in said if one.rises_at]
    together = len(rising) > 1 or any(one not in told for one in rising)
    all_once = len(advice) > 1 and all(one.once for one in advice)
    several_wider = sum(bool(one.wider) for one in told) > 1
    lines = []
    for one in told:
        remarks = ["The rate still rises there; more was not measured"] if one.rises_at and not together else []
        remarks += [_ONCE] if one.once and not all_once else []
        remarks += [] if several_wider else one.wider
        lines.append(". ".join([one.text, *remarks]) + ".")
    lines += more
    for most in dict.fromkeys(one.rises_at for one in rising) if together else ():
        where = "; ".join(one.name for one in rising if one.rises_at == most)
        lines.append(f"The rate still rises at {most}, and more was not measured: {where}.")
    return lines + ([_ALL_ONCE] if all_once else []) + ([_WIDER] if several_wider else [])


def _repeats(one: _Said, before: Sequence[_Said]) -> bool:
    return bool(one.points) and not one.by_chance and any(one.points <= other.points for other in before)


def _least_of_all(results: Sequence[PointResult], campaign: Campaign) -> list[_Said]:
    """Over all knobs together, where several were varied: the least that reaches nearly the best rate."""
    names = naming_axes(results, campaign.varied)
    knobs = [name for name in names if name in KNOBS]
    groups: dict[tuple[Any, ...], list[PointResult]] = {}
    for result in results:
        if result.trusted:
            groups.setdefault(tuple(result.axes.get(name) for name in names if name not in KNOBS), []).append(result)
    several = [members for members in groups.values() if len(members) > 1]
    return [_least_of(members, names) for members in several[:MOST_SERIES]] if len(knobs) > 1 else []


def _least_of(members: Sequence[PointResult], names: Sequence[str]) -> _Said:
    best = max(members, key=lambda r: r.rate.value)
    least = min((r for r in members if r.rate.value >= ENOUGH * best.rate.value), key=_amounts)
    axes = {name: best.axes.get(name) for name in (*TRAINING[:2], *names) if name not in KNOBS}
    subject = label({name: value for name, value in axes.items() if value not in (None, "none")})
    knobs = [name for name in names if name in KNOBS]
    rates = _Chosen(members)
    advice = f"request {point_label(least, knobs)} for {rates.of(least)} images/s"
    said = f"{subject}: of all that was measured, {advice}"
    if least is not best:
        said += f", against {rates.of(best)} with {point_label(best, knobs)}"
    return _advice(said, rates, least, best)


def _advice(text: str, rates: _Chosen, *shown: PointResult) -> _Said:
    once = min(result.runs for result in shown) < 2
    points = frozenset(result.point_id for result in shown)
    return _Said(text, points=points, once=once, wider=() if once else tuple(rates.remark(*shown)))


class _Chosen:
    """Rates as they are shown of points that are chosen from ``results`` for what was measured there."""

    def __init__(self, results: Sequence[PointResult]):
        found, self.able = chosen_from([r.rate for r in results])
        self._estimates = {r.point_id: estimate for r, estimate in zip(results, found, strict=True)}

    def of(self, result: PointResult) -> str:
        return with_interval(self._estimate(result))

    def remark(self, *shown: PointResult) -> list[str]:
        """Why intervals are not those of the table, where they are not."""
        if all(self._estimate(r).high <= r.rate.high or not r.rate.known for r in shown):
            return []
        return [f"Wider in brackets than in the table, since it was chosen among {self.able} that may be the best"]

    def _estimate(self, result: PointResult) -> Estimate:
        # how runs differ is not known of any, so no width would do
        return self._estimates[result.point_id] if result.runs > 1 else result.rate


def _amounts(result: PointResult) -> tuple[float, ...]:
    """What a point takes, the dearest thing first: cores, then what is started on them."""
    asked = {name: float(result.axes.get(name) or 0) for name in KNOBS if name != "storage"}
    cores = asked.pop("cpu_cores") * asked.pop("nodes")
    return (cores, *asked.values())


def _fastest(results: Sequence[PointResult], campaign: Campaign) -> tuple[list[_Said], list[str]]:
    """The fastest point of each training, where no amount of anything was varied, and those as fast as it."""
    groups: dict[tuple[Any, ...], list[PointResult]] = {}
    for result in results:
        if result.trusted:
            groups.setdefault(tuple(result.axes.get(name) for name in (*TRAINING, *GIVEN)), []).append(result)
    names = naming_axes(results, campaign.varied)
    said = [_fastest_of(members, names) for members in groups.values()]
    more = [f"… and {len(said) - MOST_SERIES} more: filter the table of points for yours."]
    return said[:MOST_SERIES], more if len(said) > MOST_SERIES else []


def _fastest_of(members: Sequence[PointResult], names: Sequence[str]) -> _Said:
    first, *others = sorted(members, key=lambda r: r.rate.value, reverse=True)
    told = (*TRAINING, *(name for name in GIVEN if name in names))
    axes = {name: value for name in told if (value := first.axes.get(name)) not in (None, "none")}
    if not others:
        rate = with_interval(first.rate)
        return _Said(f"{label(axes)}: {rate} images/s at the only point to rely on; there is no choice yet")
    rates = _Chosen([first, *others])
    said = f"{label(axes)}: the fastest was {point_label(first, names)} with {rates.of(first)} images/s"
    alike = [point_label(r, names) for r in others if not stats.ratio(first.rate, r.rate).differs_from(1.0)]
    if alike:
        more = f" and {len(alike) - 3} more" if len(alike) > 3 else ""
        said += f". Not to be told apart from it: {'; '.join(alike[:3])}{more}"
    if 1 + len(alike) >= MANY:
        said += f". It is the best of {1 + len(alike)} alike, so its rate is likely too high"
    return _advice(said, rates, first)


def _request(series: Series) -> _Said:
    subject = _subject(series)
    trusted = [step for step in series.steps if step.result.trusted]
    if len(trusted) < 2:
        reason = "fewer than two of its points can be relied on" if len(series.steps) > 1 else "only one value measured"
        return _Said(f"{subject}: no advice, since {reason}")
    best = max(trusted, key=lambda step: step.result.rate.value)
    least = next(step for step in trusted if step.result.rate.value >= ENOUGH * best.result.rate.value)
    rates = _Chosen([step.result for step in trusted])
    advice = f"request {amount(series, least)} for {rates.of(least.result)} images/s"
    if least is not best:
        advice += f", against {rates.of(best.result)} with {amount(series, best)}"
    chance = _by_chance(series, trusted[0], least)
    rises = best is series.steps[-1] and not chance and still_rising(trusted)
    said = ". ".join([f"{subject}: {advice}", *chance])
    return replace(
        _advice(said, rates, least.result, best.result),
        name=label(dict(series.key)) or subject,
        rises_at=amount(series, best) if rises else "",
        by_chance=bool(chance),
    )


def _subject(series: Series) -> str:
    axes = series.steps[0].result.axes
    names = {name: axes.get(name) for name in ("workload", "framework")} | dict(series.key)
    return label({name: value for name, value in names.items() if value not in (None, "none")})


def _by_chance(series: Series, first: Step, least: Step) -> list[str]:
    """That the choice gains nothing over the first value for sure, where so."""
    if least is first or stats.ratio(least.result.rate, first.result.rate).differs_from(1.0):
        return []
    return [f"Its gain over {amount(series, first)} cannot be told from chance: repeat before paying for it"]


def still_rising(steps: Sequence[Step]) -> bool:
    """Whether the last of steps, two or more, surely has more than enough of the rate of the one before."""
    last, before = steps[-1].result, steps[-2].result
    return last.trusted and before.trusted and stats.ratio(last.rate, before.rate).low > 1 / ENOUGH
