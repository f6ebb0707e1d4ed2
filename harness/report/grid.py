"""Tables as values: headers, cells and notes, before anything is printed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.analysis.points import PointResult, point_results, sort_key
from harness.analysis.scaling import (
    Series,
    axis_word,
    label,
    naming_axes,
    point_label,
    primary_axis,
    series_along,
    series_axes,
)
from harness.analysis.stats import Estimate
from harness.model.campaign import Campaign
from harness.report.numbers import DASH, duration, with_interval

#: More points than this are counted in a note, not named.
MOST_NAMED = 3
#: Header of the column that may be folded, or be moved below the table.
REMARKS = "remarks"


@dataclass(frozen=True)
class Grid:
    """A table of texts. ``numeric`` says which columns are aligned right; the first ``keys`` columns name a row."""

    title: str
    headers: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    keys: int = 1


def text(cell: Any) -> str:
    """A value of an axis as text."""
    if cell is None:
        return "auto"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:g}" if isinstance(cell, float) else str(cell)


def points_grid(table: pd.DataFrame, campaign: Campaign) -> Grid:
    """One row per point: its axes, images/s, training time, speed-up along the primary axis, what is wrong."""
    results = point_results(table)
    axes = naming_axes(results, campaign.varied)
    axis = primary_axis(results, campaign.varied)
    series = series_along(results, campaign.varied, axis) if axis else []
    speedups = speedups_of(series)
    results = sorted(results, key=lambda r: sort_key(r.axes.get(name) for name in axes))
    columns = [_axis_column(name, results) for name in axes]
    columns.append(("images/s", True, [with_interval(r.rate) for r in results]))
    columns.append(("time", True, [duration(r.time.value) for r in results]))
    if speedups:
        cells = [speedups.get((r.point_id, r.variant)) for r in results]
        columns.append(("speed-up", True, [with_interval(cell) if cell else DASH for cell in cells]))
    columns.append(("runs", False, [runs_text(r, campaign.repeats) for r in results]))
    if any(remarked := [remarks(r) for r in results]):
        columns.append((REMARKS, False, remarked))
    rows = tuple(zip(*(cells for _, _, cells in columns), strict=True))
    headers, numeric = tuple(c[0] for c in columns), tuple(c[1] for c in columns)
    return Grid(campaign.name, headers, numeric, rows, _notes(table, campaign, results, series), keys=len(axes))


def _axis_column(name: str, results: Sequence[PointResult]) -> tuple[str, bool, list[str]]:
    values = [r.axes.get(name) for r in results]
    numeric = all(isinstance(v, int | float | None) and not isinstance(v, bool) for v in values)
    return axis_word(name), numeric, [text(v) for v in values]


def unlike_steps(results: Sequence[PointResult]) -> bool:
    """Whether a step of some points holds more images than one of others: times of their steps do not compare."""
    more, fewer = ("nodes", "ranks_per_node", "batch_size"), ("batch_interval", "echo")
    sizes = [[math.prod(r.axes.get(name) or 1 for name in names) for names in (more, fewer)] for r in results]
    return len({images / times for images, times in sizes}) > 1


def speedups_of(series: Sequence[Series]) -> dict[tuple[str, int], Estimate]:
    """(point, variant) → speed-up against the first point of its series."""
    return {(s.result.point_id, s.result.variant): s.speedup for one in series for s in one.steps}


def runs_text(result: PointResult, repeats: int) -> str:
    """``3`` where all repeats were measured, ``2 of 3`` where not."""
    return str(result.runs) if result.runs == repeats else f"{result.runs} of {repeats}"


def remarks(result: PointResult) -> str:
    """States other than success, and codes of findings that make the number doubtful."""
    states = [f"{state} ×{n}" if n > 1 else state for state, n in result.states.items() if state != "SUCCEEDED"]
    codes = [finding.code.replace("_", " ") for finding in result.findings if finding.severity != "info"]
    return ", ".join(dict.fromkeys([*states, *codes]))


def _notes(
    table: pd.DataFrame, campaign: Campaign, results: Sequence[PointResult], series: Sequence[Series]
) -> tuple[str, ...]:
    notes = []
    attempted = set(zip(table["point_id"], table["repeat"], strict=True))
    waiting = [task for task in campaign.tasks if (task.point_id, task.repeat) not in attempted]
    if waiting:
        notes.append(f"{len(waiting)} of {len(campaign.tasks)} runs have not been tried yet.")
    if campaign.refusals:
        notes.append(f"{len(campaign.refusals)} points were refused on {campaign.cluster}; `harness plan` says why.")
    origins = sorted({str(r.conditions.get("dataset_origin")) for r in results} - {"None", "none", "real"})
    if origins:
        notes.append(f"Data: {', '.join(origins)} (not the published sets).")
    shown = naming_axes(results, campaign.varied)
    for name in (axis for axis in campaign.varied if axis not in shown):
        if len(values := list(dict.fromkeys(text(r.axes.get(name)) for r in results))) > 1:
            word = axis_word(name)
            notes.append(f"No column: {word}, which goes with the others ({', '.join(values)}).")
    unlike = ", which are not of one number of images: compare images/s" if unlike_steps(results) else ""
    notes.append(f"{interval_note(results)} Time: the timed steps alone{unlike}.")
    return (*notes, *base_notes(series))


def base_notes(series: Sequence[Series]) -> list[str]:
    """Speed-ups against a point that is not to be relied on, which no mark on their own points tells."""
    found = [one for one in series if len(one.steps) > 1 and not one.steps[0].result.trusted]
    if not found:
        return []
    where = "; ".join(point_label(one.steps[0].result, [*one.key, one.axis]) for one in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return [f"Do not rely on speed-ups against {where}{more}: that point is not to be relied on."]


def interval_note(results: Sequence[PointResult]) -> str:
    """What is in brackets, and of what it tells nothing."""
    kinds = {r.rate.kind for r in results if r.rate.known}
    if "within" not in kinds:
        return "In brackets: 95 % interval."
    if kinds == {"within"}:
        return "In brackets: 95 % interval within the one run of each point, which tells nothing of how runs differ."
    alone = "that of a point with one run is within it, which tells nothing of how runs differ"
    return f"In brackets: 95 % interval; {alone}."


def pivot_grids(table: pd.DataFrame, campaign: Campaign, row_axis: str, column_axis: str) -> list[Grid]:
    """images/s with interval, ``row_axis`` down and ``column_axis`` across; a grid for each value of the other axes."""
    results = [r for r in point_results(table) if r.variant == 0]
    others = [name for name in series_axes(results, campaign.varied, None) if name not in (row_axis, column_axis)]
    groups: dict[tuple[Any, ...], list[PointResult]] = {}
    for result in results:
        groups.setdefault(tuple(result.axes.get(name) for name in others), []).append(result)
    ordered = sorted(groups.items(), key=lambda item: sort_key(item[0]))
    return [
        _pivot_grid(campaign.name, members, row_axis, column_axis, dict(zip(others, values, strict=True)))
        for values, members in ordered
    ]


def _pivot_grid(
    name: str, results: Sequence[PointResult], row_axis: str, column_axis: str, shared: Mapping[str, Any]
) -> Grid:
    columns = sorted({r.axes.get(column_axis) for r in results}, key=lambda v: sort_key([v]))
    cells: dict[tuple[Any, Any], list[str]] = {}
    for result in results:
        place = result.axes.get(row_axis), result.axes.get(column_axis)
        cells.setdefault(place, []).append(_pivot_cell(result))
    down = sorted({row for row, _ in cells}, key=lambda v: sort_key([v]))
    rows = [(text(row), *(" / ".join(cells.get((row, column), [DASH])) for column in columns)) for row in down]
    headers = (f"{row_axis} \\ {column_axis}", *(text(column) for column in columns))
    doubt = " ?: not to be relied on, see `harness check`." if any(" ?" in c for r in rows for c in r) else ""
    notes = (f"{interval_note(results)} n: runs.{doubt}",)
    title = f"{name}: images/s" + (f", {label(shared)}" if shared else "")
    return Grid(title, headers, tuple(True for _ in headers), tuple(rows), notes)


def _pivot_cell(result: PointResult) -> str:
    if not math.isfinite(result.rate.value):
        return next(iter(result.states), DASH)
    doubt = "" if result.trusted else " ?"
    return f"{with_interval(result.rate)} n={result.runs}{doubt}"
