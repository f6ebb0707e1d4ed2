"""A comparison as tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.analysis.compare import Comparison, Pair, Side
from harness.analysis.reference import Check, Reference
from harness.analysis.scaling import naming_axes, point_label
from harness.report.grid import Grid
from harness.report.numbers import DASH, number, with_interval

#: Columns of normalised rates: key, header.
_NORMALISED = (("per_core", "per core"), ("per_gpu", "per GPU"), ("per_watt", "per watt"))
#: Conditions with more text than this are shown shortened.
_MOST_TEXT = 60


def labels(side: Side, varied: Sequence[str]) -> dict[str, str]:
    """Point id → the name of the point among the others."""
    results = list(side.results.values())
    names = naming_axes(results, varied)
    return {point: point_label(result, names) or point for point, result in side.results.items()}


def comparison_grid(found: Comparison, metric: str, named: dict[str, str]) -> Grid:
    """A row for each point on both sides; ratios above 1 mean that the second is better."""
    first, second = found.first, found.second
    normalised = [(key, header) for key, header in _NORMALISED if metric == "images_per_s" and _any(found, key)]
    names = [f"{s.name} on {s.cluster}" if first.cluster != second.cluster else s.name for s in (first, second)]
    headers = ["point", *names, "ratio", "verdict"]
    for _, header in normalised:
        headers += [f"{header}, first", "second"]
    headers += ["of ceiling, first", "second"]
    rows = [_row(pair, found, named, [key for key, _ in normalised]) for pair in found.pairs]
    numeric = (False, True, True, True, False, *(True for _ in headers[5:]))
    return Grid(f"{metric}: {second.name} against {first.name}", tuple(headers), numeric, tuple(rows), _notes(found))


def _any(found: Comparison, key: str) -> bool:
    sides = (found.first, found.second)
    return any(math.isfinite(values[key]) for side in sides for values in side.normalised.values())


def _row(pair: Pair, found: Comparison, named: dict[str, str], keys: Sequence[str]) -> tuple[str, ...]:
    a, b = found.first.normalised[pair.point_id], found.second.normalised[pair.point_id]
    cells = [named[pair.point_id], with_interval(pair.first), with_interval(pair.second), with_interval(pair.ratio)]
    cells.append(pair.verdict)
    for key in keys:
        cells += [number(a[key], 3), number(b[key], 3)]
    return (*cells, *(f"{v['of_ceiling']:.0%}" if math.isfinite(v["of_ceiling"]) else DASH for v in (a, b)))


def _notes(found: Comparison) -> tuple[str, ...]:
    notes = []
    trusted = [pair for pair in found.pairs if pair.trusted]
    if found.overall.known:
        mean = f"Geometric mean of {len(trusted)} points: {with_interval(found.overall)}"
        notes.append(f"{mean}; {found.second.name} is better above 1.")
    elif trusted:
        notes.append("One point alone can be relied on: no mean.")
    for name, side, points in _alone(found):
        notes.append(f"{len(points)} points were measured or planned only in {name} ({side}).")
    notes += [
        f"Differs: {name}: {_short(a)} | {_short(b)}" for name, (a, b) in found.differing.items() if name != "cluster"
    ]
    notes.append("In brackets: 95 % interval. of ceiling: share of the best rate of this model and these ranks there.")
    return tuple(notes)


def _alone(found: Comparison) -> list[tuple[str, str, tuple[str, ...]]]:
    sides = ((found.first, found.only_first), (found.second, found.only_second))
    return [(side.name, side.cluster, points) for side, points in sides if points]


def _short(values: tuple[str, ...]) -> str:
    text = ", ".join(values) or "unknown"
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"


def check_grid(reference: Reference, checks: Sequence[Check], side: Side, tolerance: float) -> Grid:
    """Every point of a reference: then, now, and whether it was kept."""
    rows = tuple(
        (c.label, with_interval(c.then), with_interval(c.now), with_interval(c.ratio), c.verdict) for c in checks
    )
    notes = [
        f"regressed: worse than the reference by more than {tolerance:.0%}, and surely so; missing or doubtful "
        "points are not kept either."
    ]
    for name, values in side.conditions.items():
        then = tuple(reference.conditions.get(name, ()))
        if then != values:
            notes.append(f"Differs: {name}: {_short(then)} | {_short(values)}")
    title = f"{reference.metric}: {side.name} against its reference ({reference.campaign} on {reference.cluster})"
    return Grid(
        title, ("point", "then", "now", "ratio", "verdict"), (False, True, True, True, False), rows, tuple(notes)
    )
