"""How rate and time follow one axis: series over it, speed-up and efficiency with intervals. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis import stats
from harness.analysis.points import PointResult, sort_key
from harness.analysis.stats import Estimate

#: Numeric axes along which results are compared, the most asked-for first.
PREFERRED = ("cpu_cores", "workers", "parallel_threads", "prefetch", "nodes", "ranks_per_node", "gpus_per_rank")
#: Axes that count what a job asks for or starts.
RESOURCES = frozenset({"cpu_cores", "workers", "parallel_threads", "nodes", "ranks_per_node", "gpus_per_rank"})
#: Those of which twice as many could compute twice as fast, so that an efficiency makes sense.
COMPUTING = frozenset({"cpu_cores", "nodes", "ranks_per_node", "gpus_per_rank"})
#: These count the same where each rank has as many cores.
_ALIKE = frozenset({"cpu_cores", "ranks_per_node"})


@dataclass(frozen=True)
class Step:
    """One point of a series: ``x`` on the axis; ``speedup`` against the series' first measured point.

    ``efficiency``: the speed-up over the ratio of the resources, which is exact: its interval is the speed-up's.
    Unknown along what does not compute (workers, threads), and where another resource changes along the axis.
    """

    x: float
    result: PointResult
    speedup: Estimate
    efficiency: Estimate


@dataclass(frozen=True)
class Series:
    """Points along one axis; ``key`` names what they share (varied axis → value). ``beside``: varied axes that change
    along it, too, since each of its values went with one of theirs."""

    axis: str
    key: Mapping[str, Any]
    steps: tuple[Step, ...]
    beside: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return label(self.key)

    @property
    def base(self) -> Step | None:
        return self.steps[0] if self.steps else None


def label(key: Mapping[str, Any]) -> str:
    """``resnet20_cifar10, torch, 4 workers``: names stand for themselves, other values with their axis."""
    return ", ".join(_word(name, value) for name, value in key.items()) or "all"


def axis_word(name: str) -> str:
    """``cpu cores`` for ``cpu_cores``, ``clock`` for ``options.clock``."""
    return name.removeprefix("options.").replace("_", " ")


def _word(name: str, value: Any) -> str:
    axis = axis_word(name)
    if isinstance(value, bool):
        return axis if value else f"no {axis}"
    if isinstance(value, str):
        return value
    if value is None:
        return f"{axis} auto"
    if name not in RESOURCES:
        return f"{axis} {value}" if isinstance(value, int) else f"{axis} {value:g}"
    counted, per, what = axis.partition(" per ")  # 1 rank per node
    return f"{value} {counted.removesuffix('s') if value == 1 else counted}{per}{what}"


def naming_axes(results: Sequence[PointResult], varied: Sequence[str]) -> list[str]:
    """The axes that name a point among others: those that tell series apart, then the primary axis."""
    axis = primary_axis(results, varied)
    names = series_axes(results, varied, axis) + ([axis] if axis else [])
    return names or ["workload", "framework"]


def point_label(result: PointResult, names: Sequence[str]) -> str:
    """A point's name from the axes ``names``."""
    return label({name: result.axes.get(name) for name in names if result.axes.get(name) not in (None, "none")})


def amount(series: Series, step: Step) -> str:
    """``2 cpu cores``, ``prefetch 8``; ``2 cpu cores, 4 workers`` where these changed with them."""
    x = int(step.x) if step.x == int(step.x) else step.x
    return label({series.axis: x} | {name: step.result.axes.get(name) for name in series.beside})


def determines(results: Sequence[PointResult], known: str, other: str) -> bool:
    """Whether the value of axis ``known`` fixes that of ``other`` in all results (as derived values do)."""
    seen: dict[Any, Any] = {}
    return all(seen.setdefault(r.axes.get(known), r.axes.get(other)) == r.axes.get(other) for r in results)


def numeric_axes(results: Sequence[PointResult], varied: Sequence[str]) -> list[str]:
    """Varied axes with at least two numeric values, preferred ones first; values derived from another axis last."""
    found = []
    for name in varied:
        values = {r.axes.get(name) for r in results} - {None}
        if len(values) > 1 and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
            found.append(name)
    order = {name: index for index, name in enumerate(PREFERRED)}

    def derived(name: str) -> bool:
        return any(
            determines(results, other, name) and not determines(results, name, other)
            for other in found
            if other != name
        )

    return sorted(found, key=lambda name: (derived(name), order.get(name, len(order)), found.index(name)))


def primary_axis(results: Sequence[PointResult], varied: Sequence[str]) -> str | None:
    """The axis that figures and sentences go along, or None where nothing numeric was varied."""
    axes = numeric_axes(results, varied)
    return axes[0] if axes else None


def series_axes(results: Sequence[PointResult], varied: Sequence[str], axis: str | None) -> list[str]:
    """Varied axes that tell series apart: without ``axis``, and without what ``axis`` or another one determines."""
    keys: list[str] = []
    for name in varied:
        if name == axis or len({r.axes.get(name) for r in results}) < 2:
            continue
        if axis is not None and determines(results, axis, name):
            continue
        if not any(determines(results, key, name) for key in keys):
            keys.append(name)
    return keys


def series_along(results: Sequence[PointResult], varied: Sequence[str], axis: str) -> list[Series]:
    """All series along ``axis`` whose points have a rate; unmeasured points are left out."""
    keys = series_axes(results, varied, axis)
    groups: dict[tuple[Any, ...], list[PointResult]] = {}
    for result in results:
        # variant 0 alone: no line goes through runs of one point under different conditions
        if result.runs and result.variant == 0 and result.axes.get(axis) is not None:
            groups.setdefault(tuple(result.axes.get(key) for key in keys), []).append(result)
    ordered = sorted(groups.items(), key=lambda item: sort_key(item[0]))
    return [_series(axis, dict(zip(keys, values, strict=True)), members, varied) for values, members in ordered]


def _series(axis: str, key: Mapping[str, Any], members: Sequence[PointResult], varied: Sequence[str]) -> Series:
    others = [name for name in varied if name != axis and name not in key]
    beside = tuple(name for name in others if len({str(member.axes.get(name)) for member in members}) > 1)
    grown = COMPUTING & {axis, *beside}
    efficient = axis in COMPUTING and (len(grown) == 1 or (grown == _ALIKE and _in_proportion(members, *_ALIKE)))
    return Series(axis, key, _steps(members, axis, efficient), beside)


def _in_proportion(members: Sequence[PointResult], one: str, other: str) -> bool:
    return len({float(m.axes[one]) / float(m.axes[other]) for m in members}) == 1


def _steps(members: Sequence[PointResult], axis: str, efficient: bool) -> tuple[Step, ...]:
    ordered = sorted(members, key=lambda result: float(result.axes[axis]))
    base = ordered[0]
    steps = []
    for result in ordered:
        x, first = float(result.axes[axis]), float(base.axes[axis])
        speedup = stats.ratio(result.rate, base.rate) if result is not base else _one()
        efficiency = stats.scaled(speedup, first / x) if efficient and first > 0 else stats.UNKNOWN
        steps.append(Step(x, result, speedup, efficiency))
    return tuple(steps)


def _one() -> Estimate:
    """The base against itself."""
    return Estimate(1.0, 0.0, 1.0, 0, "none")
