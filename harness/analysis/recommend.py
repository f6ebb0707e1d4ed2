"""The recommendation: the cheapest setting that reaches a share of what is attainable, or why none can be given."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.analysis.capacity import Group, LeftOut, Observation
from harness.analysis.capacity_fit import SAMPLES, Fit, Model, model_of, samples, with_scatter_of_runs
from harness.analysis.capacity_lanes import Design, Floats, Setting, in_turns, lanes
from harness.analysis.recommend_notes import notes_on
from harness.analysis.recommend_plateau import Plateau, plateau_of
from harness.analysis.recommend_settings import COUNTED, Layout, Search, by_layout

#: Share of the attainable rate that is good enough.
SHARE = 0.95
#: Fewer points than this are no ground for a model.
FEWEST_POINTS = 4
#: Median error of predicting points left out, beyond which the model does not describe the data.
WORST_HELD_OUT = 0.15
#: A setting beyond the largest measured value by more than this factor is not recommended.
FARTHEST = 1.25
#: A setting must reach the share, less :data:`SLACK`, in so many of the samples.
SUREST, SLACK = 0.8, 0.05


@dataclass(frozen=True)
class Range:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Choice:
    """The cheapest good setting of one layout. ``efficiency``: rate per rank against the smallest layout's.

    Its interval is that of the two rates' ratio in each of the fits to redrawn data.
    """

    layout: Layout
    setting: Setting
    rate: Range
    efficiency: Range
    core_hours_per_million: float


@dataclass(frozen=True)
class Answer:
    """What to ask for. ``ranges``: 95 % of the samples would ask for a value in it; ``chance`` of those samples find
    the setting within :data:`SLACK` of the share wanted. ``limited_by``: the lane that takes longest there;
    ``lane_shares``: each one's time against it; ``in_turns``: they follow each other instead of overlapping;
    ``wait_share``: of the time in which training waited for data where this setting was measured, else NaN.
    ``share_of_ceiling`` is that of the setting itself. ``measured``: the rates are so, and not the model's."""

    setting: Setting
    rate: Range
    ceiling: Range
    share_of_ceiling: float
    ranges: Mapping[str, tuple[float, float]]
    chance: float
    limited_by: str
    lane_shares: Mapping[str, float]
    in_turns: bool
    wait_share: float
    choices: tuple[Choice, ...]
    model: Model
    points: int
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    measured: bool = False


@dataclass(frozen=True)
class Refused:
    """No recommendation: ``code`` is stable, ``reason`` says why, ``advice`` what to measure; ``best`` was fastest."""

    code: str
    reason: str
    advice: str
    best: Observation | None
    left_out: tuple[LeftOut, ...]
    held_out_median: float = math.nan


def recommend(
    group: Group, limits: Mapping[str, int] | None = None, share: float = SHARE, draws: int = SAMPLES
) -> Answer | Refused:
    """The cheapest setting that reaches ``share`` of the ceiling within ``limits``, or the reason to give none."""
    if refused := _unfit_data(group):
        return refused
    candidates = by_layout(group, limits or {})
    if not candidates:
        return _refuse(group, "failed", "half of the runs or more failed at every setting that may be asked for")
    model = model_of(group)
    if model is None or not len(model.held_out):
        return _refuse(group, "too_few_points", f"{len(group.observations)} points are too few for the model's terms")
    if model.held_out_median > WORST_HELD_OUT:
        reason = f"points left out are predicted with a median error of {model.held_out_median:.0%}"
        advice = "Look for neighbours on the nodes (`harness check`), repeat, or split what the points have in common."
        return _refuse(group, "model_misfit", reason, advice, model)
    return _judge(group, model, Search(candidates, share), draws, limits or {})


def _unfit_data(group: Group) -> Refused | None:
    used, left = len(group.observations), Counter(point.code for point in group.left_out)
    if left and sum(left.values()) >= used:
        code, count = left.most_common(1)[0]
        reason = next(point.reason for point in group.left_out if point.code == code)
        return _refuse(group, code, f"{count} of {used + sum(left.values())} points cannot be relied on: {reason}")
    if used < FEWEST_POINTS:
        reason = f"{used} point{'s were' if used != 1 else ' was'} measured; the model needs {FEWEST_POINTS} or more"
        return _refuse(group, "too_few_points", reason, _more_points(group, FEWEST_POINTS - used))
    if not any(len(group.values(name)) > 1 for name in Setting.__dataclass_fields__):
        return _refuse(group, "nothing_varied", "no knob was varied")
    return None


_ADVICE = {
    "too_few_points": "Measure more values of cpu_cores, workers, parallel_threads or prefetch.",
    "nothing_varied": "Vary cpu_cores, workers, parallel_threads, prefetch, storage or nodes in the sweep.",
    "unsteady": "Give the sweep more timed steps (`steps: {timed: …}`) until `harness check` finds every run steady.",
    "binding": "Have the cores granted that are asked for: see `harness check` for what each rank could use.",
    "conditions": "Measure all points under the same conditions: `harness run SWEEP --fresh`.",
    "failed": "See why with `harness check`, then `harness retry`.",
    "doubtful": "See `harness check`.",
}


def _more_points(group: Group, missing: int) -> str:
    names = {"cores": "CPU cores per rank", "workers": "workers", "threads": "parallel_threads"}
    names |= {name: name for name in ("prefetch", "storage", "nodes", "ranks_per_node")}
    varied = [(axis, group.values(knob)) for knob, axis in names.items() if len(group.values(knob)) > 1]
    told = [
        f"{axis} {', '.join(f'{v:g}' if isinstance(v, float) else str(v) for v in values)}" for axis, values in varied
    ]
    had = f"Measured so far: {'; '.join(told)}. " if told else ""
    more = f"Measure {missing} or more further points"
    return f"{had}{more}: other values, or another of cpu_cores, workers, parallel_threads and prefetch beside."


def _refuse(group: Group, code: str, reason: str, advice: str = "", model: Model | None = None) -> Refused:
    best = max(group.observations, key=lambda o: o.rate, default=None)
    error = model.held_out_median if model else math.nan
    return Refused(code, reason, advice or _ADVICE[code], best, group.left_out, error)


def _judge(group: Group, model: Model, search: Search, draws: int, limits: Mapping[str, int]) -> Answer | Refused:
    rates = search.rates(model.best)
    index = search.choose(rates)
    setting = search.settings[index]
    if beyond := _beyond(group, setting):
        reason = f"the rate still grows at {beyond[1]:g} {beyond[0]}, the most that was measured"
        advice = f"Measure more {beyond[0]}, up to {math.ceil(2 * beyond[1])}; or limit them with --at-most."
        return _refuse(group, "beyond_measured", reason, advice, model)
    model = with_scatter_of_runs(model, group.observations)
    drawn = np.array([search.rates(fit) for fit in samples(model, group.observations, draws)])
    chance = _chance(search, drawn, index)
    if chance >= SUREST:
        return _answer(group, model, search, index, rates, drawn, limits)
    flat = plateau_of(group.observations, search.share, SLACK)
    if flat and flat.first.setting in search.settings:
        index = search.settings.index(flat.first.setting)
        return _as_measured(_answer(group, model, search, index, rates, drawn, limits), flat)
    ranges = _ranges(group, search, drawn)
    spans = ", ".join(f"{name} between {low:g} and {high:g}" for name, (low, high) in ranges.items() if low < high)
    reason = f"the data leave {spans or 'the ceiling'} open: {chance:.0%} sure of the setting that fits best"
    return _refuse(group, "undetermined", reason, "Measure points between and beyond these, or repeat.", model)


def _chance(search: Search, drawn: Floats, index: int) -> float:
    return float(np.mean(drawn[:, index] >= (search.share - SLACK) * drawn.max(axis=1)))


def _ranges(group: Group, search: Search, drawn: Floats) -> dict[str, tuple[float, float]]:
    chosen = [search.settings[search.choose(row)] for row in drawn]
    return {name: _span([_number(s, name) for s in chosen]) for name in _asked(group)}


def _answer(
    group: Group,
    model: Model,
    search: Search,
    index: int,
    rates: Floats,
    drawn: Floats,
    limits: Mapping[str, int],
) -> Answer:
    """With ``rates``, shape (settings,), by the best fit, and ``drawn``, shape (samples, settings), by the others."""
    setting = search.settings[index]
    times = _lane_times(model.best, setting)
    return Answer(
        setting=setting,
        rate=_range(rates[index], drawn[:, index], model.best.scale),
        ceiling=_range(float(rates.max()), drawn.max(axis=1), 1.0),
        share_of_ceiling=float(rates[index] / rates.max()),
        ranges=_ranges(group, search, drawn),
        chance=_chance(search, drawn, index),
        limited_by=max(times, key=lambda name: times[name]),
        lane_shares=times,
        in_turns=bool(in_turns(model.best.form, Design.of([setting]))[0]),
        wait_share=next((o.wait_share for o in group.observations if o.setting == setting), math.nan),
        choices=_choices(search, rates, drawn, model),
        model=model,
        points=len(group.observations),
        left_out=group.left_out,
        notes=notes_on(group, model.best, setting, limits),
    )


def _as_measured(answer: Answer, flat: Plateau) -> Answer:
    """The same with rates that were measured instead of predicted, and what they leave open of the setting."""
    rate, best = (Range(o.rate, *flat.bounds(o)) for o in (flat.first, flat.best))
    setting = answer.setting
    least = {name: _number(flat.below or setting, name) for name in answer.ranges}
    hours = core_hours(setting, rate.value, 1e6)
    note = f"the fits to redrawn data do not agree, but the rates measured at this setting and {flat.points - 1} larger"
    return replace(
        answer,
        rate=rate,
        ceiling=best,
        share_of_ceiling=rate.value / best.value,
        ranges={name: (min(low + 1, _number(setting, name)), _number(setting, name)) for name, low in least.items()},
        choices=(Choice(Layout(setting.nodes, setting.ranks_per_node), setting, rate, Range(1.0, 1.0, 1.0), hours),),
        notes=(f"{note} ones do not grow: these rates are as measured", *answer.notes),
        measured=True,
    )


def _beyond(group: Group, setting: Setting) -> tuple[str, float] | None:
    for name in COUNTED:
        known = [value for value in group.values(name) if value is not None]
        value = getattr(setting, name)
        if len(known) > 1 and value is not None and value > FARTHEST * max(known):
            words = {"cores": "CPU cores for each rank", "workers": "workers", "threads": "threads"}
            return words[name], max(known)
    return None


def _asked(group: Group) -> list[str]:
    """The countable knobs that were varied."""
    names = (*COUNTED, "prefetch", "nodes", "ranks_per_node")
    return [name for name in names if len(group.values(name)) > 1]


def _number(setting: Setting, name: str) -> float:
    value = getattr(setting, name)
    return math.nan if value is None else float(value)


def _span(values: Sequence[float]) -> tuple[float, float]:
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return (math.nan, math.nan)
    low, high = np.quantile(known, [0.025, 0.975], method="nearest")
    return float(low), float(high)


def _range(value: float, drawn: Floats, scale: float) -> Range:
    """The samples' quantiles, made wider by what the model leaves unexplained of a single point."""
    low, high = np.quantile(drawn / value, [0.025, 0.975])
    unexplained = 1.96 * 0.01 * scale
    return Range(
        float(value),
        float(value * math.exp(-math.hypot(math.log(min(low, 1.0)), unexplained))),
        float(value * math.exp(math.hypot(math.log(max(high, 1.0)), unexplained))),
    )


def _lane_times(fit: Fit, setting: Setting) -> dict[str, float]:
    """Each lane's time against the longest one's."""
    design = Design.of([setting])
    found, turns = lanes(fit.form, fit.logs, design), bool(in_turns(fit.form, design)[0])
    shared = 0.0 if turns else float(found.shared[0])
    times = {
        "shared cores" if shared else "compute": float(found.compute[0]) + shared,
        "gradient exchange": float(found.exchange[0]),
        "preparation": float(found.prepare[0]),
        "storage": float(found.storage[0]),
    }
    longest = max(times.values())
    return {name: time / longest for name, time in times.items() if time > 0}


def _choices(search: Search, rates: Floats, drawn: Floats, model: Model) -> tuple[Choice, ...]:
    found: list[Choice] = []
    first: Floats | None = None
    for layout, part in zip(search.layouts, search.parts, strict=True):
        index = search.cheapest(rates, part, float(rates[part].max()))
        if index is None:
            continue
        setting, rate = search.settings[index], float(rates[index])
        per_rank = np.append(drawn[:, index], rate) / layout.ranks
        first = per_rank if first is None else first
        against = per_rank / first
        # both rates are the model's: what it leaves unexplained of single points is in each of them
        unlike = model.best.scale * math.sqrt(2) if found else 0.0
        efficiency = _range(float(against[-1]), against[:-1], unlike)
        hours = core_hours(setting, rate, 1e6)
        spread = _range(rate, drawn[:, index], model.best.scale)
        found.append(Choice(layout, setting, spread, efficiency, hours))
    return tuple(found)


def core_hours(setting: Setting, rate: float, images: float) -> float:
    """Core-hours for so many images at ``rate`` images/s."""
    return setting.cores * setting.ranks * images / rate / 3600
