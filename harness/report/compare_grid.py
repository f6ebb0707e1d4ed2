"""A comparison as tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.analysis.compare import Comparison, Pair, Side
from harness.analysis.reference import Check, Reference
from harness.analysis.scaling import naming_axes, point_label
from harness.analysis.stats import CONFIDENCE
from harness.report.grid import Grid
from harness.report.numbers import DASH, number, with_interval

#: Columns of normalised rates: key, header.
_NORMALISED = (
    ("per_core", "per core"),
    ("per_gpu", "per GPU"),
    ("per_watt", "per watt"),
    ("of_ceiling", "of ceiling"),
)
_CEILING = "images/s for each. of ceiling: share of the best rate of this model on as many ranks in the same campaign."
#: Marks a number that is not to be relied on, where no column of verdicts says so.
_DOUBT = " ?"
#: From so many points on, one verdict or more is likely to be due to chance.
_MANY = 14
#: Conditions with more text than this are shown shortened.
_MOST_TEXT = 60


def labels(side: Side, varied: Sequence[str]) -> dict[str, str]:
    """Point id → the name of the point among the others."""
    results = list(side.results.values())
    names = naming_axes(results, varied)
    return {point: point_label(result, names) or point for point, result in side.results.items()}


def comparison_grids(found: Comparison, metric: str, named: dict[str, str]) -> list[Grid]:
    """For the terminal: the ratios, and below them what each core, GPU, watt and ceiling give."""
    first, second = found.first, found.second
    rows = tuple((named[pair.point_id], *_ratio_cells(pair)) for pair in found.pairs)
    legend = f"A: {_on_cluster(first, second)}. B: {_on_cluster(second, first)}. Ratio: B against A, above 1 is better."
    headers = ("point", "A", "B", "ratio", "verdict")
    title = f"{metric}: {second.name} against {first.name}"
    grids = [Grid(title, headers, (False, True, True, True, False), rows, (legend, *_notes(found)))]
    if kinds := _normalised_kinds(found, metric):
        wide = ("point", *(f"{header}, {side}" for _, header in kinds for side in "AB"))
        rows = tuple((named[pair.point_id], *_normalised_cells(pair, found, kinds, _DOUBT)) for pair in found.pairs)
        doubt = () if all(pair.trusted for pair in found.pairs) else (f"{_DOUBT.strip()}: do not rely on it.",)
        notes = (*doubt, _CEILING)
        grids.append(Grid(f"{metric}, normalised", wide, (False, *(True for _ in wide[1:])), rows, notes))
    return grids


def wide_grid(found: Comparison, metric: str, named: dict[str, str]) -> Grid:
    """For files: all of it in one table."""
    first, second = found.first, found.second
    kinds = _normalised_kinds(found, metric)
    twice = tuple(name for _, header in kinds for name in (f"{header}, first", f"{header}, second"))
    headers = ("point", _on_cluster(first, second), _on_cluster(second, first), "ratio", "verdict", *twice)
    rows = tuple(
        (named[pair.point_id], *_ratio_cells(pair), *_normalised_cells(pair, found, kinds)) for pair in found.pairs
    )
    numeric = (False, True, True, True, False, *(True for _ in headers[5:]))
    notes = (*_notes(found), *((_CEILING,) if kinds else ()))
    return Grid(f"{metric}: {second.name} against {first.name}", headers, numeric, rows, notes)


def _on_cluster(side: Side, other: Side) -> str:
    return side.name if side.cluster == other.cluster else f"{side.name} on {side.cluster}"


def _normalised_kinds(found: Comparison, metric: str) -> list[tuple[str, str]]:
    """The normalised columns that have numbers: key, header."""
    if metric != "images_per_s":
        return []
    sides = (found.first, found.second)
    return [
        (key, header)
        for key, header in _NORMALISED
        if any(math.isfinite(values[key]) for side in sides for values in side.normalised.values())
    ]


def _ratio_cells(pair: Pair) -> tuple[str, ...]:
    return with_interval(pair.first), with_interval(pair.second), with_interval(pair.ratio), pair.verdict


def _normalised_cells(pair: Pair, found: Comparison, kinds: Sequence[tuple[str, str]], doubt: str = "") -> list[str]:
    """``doubt`` marks the numbers of a side that is not to be relied on."""
    point, sides = pair.point_id, (found.first, found.second)
    marks = ["" if side.results[point].trusted else doubt for side in sides]
    return [
        _normalised_cell(key, side.normalised[point][key]) + mark
        for key, _ in kinds
        for side, mark in zip(sides, marks, strict=True)
    ]


def _normalised_cell(key: str, value: float) -> str:
    if key != "of_ceiling":
        return number(value, 3)
    return f"{value:.0%}" if math.isfinite(value) else DASH


def _notes(found: Comparison) -> tuple[str, ...]:
    notes = []
    trusted = [pair for pair in found.pairs if pair.trusted and math.isfinite(pair.ratio.value)]
    if found.overall.known:
        word = "better" if found.overall.value > 1 else "worse"
        told = f"{found.second.name} is {word}" if found.overall.differs_from(1.0) else "no difference is resolvable"
        notes.append(f"Geometric mean of {len(trusted)} points: {with_interval(found.overall)}: {told}.")
    elif trusted:
        notes.append("One point alone can be relied on: no mean.")
    notes += _cautions(trusted)
    if zero := sum(not math.isfinite(pair.ratio.value) for pair in found.pairs):
        notes.append(f"No ratio where a side is 0: {_points(zero)}.")
    if found.valueless:
        count = _points(len(found.valueless))
        notes.append(f"Tried on both sides, without a value on one: {count}; `harness check` says why.")
    for name, side, points in _alone(found):
        notes.append(f"Tried only in {name} ({side}): {_points(len(points))}.")
    notes += [
        f"Differs: {name}: {_short(a)} | {_short(b)}" for name, (a, b) in found.differing.items() if name != "cluster"
    ]
    notes.append("In brackets: 95 % interval; not resolvable: it holds 1. See `harness check` for what not to rely on.")
    return tuple(notes)


def _points(count: int) -> str:
    return f"{count} point{'s' * (count != 1)}"


def _cautions(trusted: Sequence[Pair]) -> list[str]:
    """What the verdicts of single points do not know."""
    once = sum(pair.ratio.rests_on == "within" for pair in trusted)
    said = (
        [f"Run once on a side: {once} of {len(trusted)}; such intervals know nothing of how runs differ."]
        if once
        else []
    )
    if len(trusted) >= _MANY:
        lucky = round((1 - CONFIDENCE) * len(trusted))
        said.append(f"Of {len(trusted)} points without a change, about {lucky} are called better or worse by chance.")
    return said


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
        f"regressed: worse than the reference by more than {tolerance:.0%}, and surely so among {len(checks)} points; "
        "missing or doubtful points are not kept either."
    ]
    if bare := sum(math.isfinite(c.ratio.value) and not c.ratio.known for c in checks):
        notes.append(f"Without an interval, and so held to the tolerance alone: {_points(bare)}.")
    for name, values in side.conditions.items():
        then = tuple(reference.conditions.get(name, ()))
        if then != values:
            notes.append(f"Differs: {name}: {_short(then)} | {_short(values)}")
    title = f"{reference.metric}: {side.name} against its reference ({reference.campaign} on {reference.cluster})"
    return Grid(
        title, ("point", "then", "now", "ratio", "verdict"), (False, True, True, True, False), rows, tuple(notes)
    )
