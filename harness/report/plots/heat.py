"""Heat maps: a cell for each pair of two axes' values, its number inside; missing cells stay empty."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize

from harness.analysis.points import PointResult, point_results, sort_key
from harness.analysis.scaling import determines, label, numeric_axes, series_axes
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.grid import text
from harness.report.numbers import number
from harness.report.plots import style

#: Pairs that people look at together, the most asked-for first: rows, columns.
PAIRS = (("parallel_threads", "prefetch"), ("workers", "batch_interval"), ("workers", "prefetch"))
#: More columns than this get no numbers inside.
MOST_NUMBERED = 14
MOST_MAPS = 6
#: Labels along one side.
MOST_TICKS = 20


@dataclass(frozen=True)
class Map:
    """``cells``: (row value, column value) → number; ``doubtful`` those not to rely on; ``bounds``: the ends of the
    95 % interval where it is known; ``once``: cells where it rests on a single run."""

    title: str
    rows: tuple[Any, ...]
    columns: tuple[Any, ...]
    cells: Mapping[tuple[Any, Any], float]
    doubtful: frozenset[tuple[Any, Any]] = frozenset()
    bounds: Mapping[tuple[Any, Any], tuple[float, float]] = field(default_factory=dict)
    once: frozenset[tuple[Any, Any]] = frozenset()


def pair_of_axes(results: Sequence[PointResult], campaign: Campaign) -> tuple[str, str] | None:
    """Two numeric axes that vary independently, or None."""
    axes = numeric_axes(results, campaign.varied)
    for rows, columns in PAIRS:
        if rows in axes and columns in axes:
            return rows, columns
    for place, rows in enumerate(axes):
        for columns in axes[place + 1 :]:
            if not determines(results, rows, columns) and not determines(results, columns, rows):
                return rows, columns
    return None


@dataclass(frozen=True)
class Measured:
    """Points over a pair of axes that are alike in all others, and the steps of all rank 0s.

    ``shared``: what tells them from the points left out, empty where there are none.
    """

    axes: tuple[str, str]
    results: Sequence[PointResult]
    shared: str
    steps: pd.DataFrame


def steps_over_axes(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Measured | str:
    """The measured points with the first values of all other axes; or what is missing."""
    results = [r for r in point_results(table) if r.runs and r.variant == 0]
    axes = pair_of_axes(results, campaign)
    if axes is None:
        return "no two numeric axes were varied independently"
    if not layout.steps_parquet.is_file():
        return f"no {layout.steps_parquet.name}; run `harness collect {campaign.name}`"
    others = [name for name in series_axes(results, campaign.varied, None) if name not in axes]
    groups: dict[tuple[Any, ...], list[PointResult]] = {}
    for result in results:
        groups.setdefault(tuple(result.axes.get(name) for name in others), []).append(result)
    key = min(groups, key=sort_key)
    shared = label(dict(zip(others, key, strict=True))) if len(groups) > 1 else ""
    return Measured(axes, groups[key], shared, pd.read_parquet(layout.steps_parquet, filters=[("rank", "==", 0)]))


def make(
    title: str,
    cells: Mapping[tuple[Any, Any], float],
    doubtful: frozenset[tuple[Any, Any]] = frozenset(),
    bounds: Mapping[tuple[Any, Any], tuple[float, float]] | None = None,
) -> Map:
    """A map whose rows and columns are the values found in ``cells``, in order."""
    rows = tuple(sorted({row for row, _ in cells}, key=lambda v: sort_key([v])))
    columns = tuple(sorted({column for _, column in cells}, key=lambda v: sort_key([v])))
    return Map(title, rows, columns, cells, doubtful, bounds or {})


def transposed(one: Map) -> Map:
    """Rows and columns changed over."""
    turned = {(column, row): value for (row, column), value in one.cells.items()}
    bounds = {(column, row): ends for (row, column), ends in one.bounds.items()}
    doubtful, once = (frozenset((column, row) for row, column in of) for of in (one.doubtful, one.once))
    return Map(one.title, one.columns, one.rows, turned, doubtful, bounds, once)


def draw(ax: Axes, one: Map, row_axis: str, column_axis: str, scale: Normalize) -> None:
    """The map on axes, dark to bright with rising numbers; ``?`` marks those not to rely on."""
    values = np.array([[one.cells.get((row, column), math.nan) for column in one.columns] for row in one.rows])
    ax.imshow(np.ma.masked_invalid(values), cmap="viridis", norm=scale, aspect="auto", origin="lower")
    across, down = (style.every(list(range(len(v))), MOST_TICKS) for v in (one.columns, one.rows))
    ax.set_xticks(across, [text(one.columns[place]) for place in across])
    ax.set_yticks(down, [text(one.rows[place]) for place in down])
    ax.grid(False)
    ax.set_facecolor("#eeeeee")
    ax.set_xlabel(style.named(column_axis))
    ax.set_ylabel(style.named(row_axis))
    ax.set_title(style.wrapped(one.title, 44))
    if len(one.columns) <= MOST_NUMBERED and len(one.rows) <= MOST_TICKS:
        for (place_y, place_x), value in np.ndenumerate(values):
            if math.isfinite(value):
                _number(ax, one, place_x, place_y, value, scale)


def _number(ax: Axes, one: Map, x: int, y: int, value: float, scale: Normalize) -> None:
    mark = " ?" if (one.rows[y], one.columns[x]) in one.doubtful else ""
    shown = number(value, 3).rstrip(".")
    ax.text(x, y, shown + mark, ha="center", va="center", fontsize=8, color=ink(float(scale(value))))


def ink(share: float) -> str:
    """``black`` or ``white``, whichever stands out more from the colour of ``share`` (0 to 1): contrast of WCAG 2."""
    colour = matplotlib.colormaps["viridis"](share)[:3]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if (light + 0.05) / 0.05 > 1.05 / (light + 0.05) else "white"


def width(one: Map) -> float:
    """Inches that a map's panel needs."""
    return min(max(4.2, 0.62 * len(one.columns) + 1.6), 11.0)


def scale_of(maps: Sequence[Map], logarithmic: bool = False) -> Normalize:
    """One scale for several maps, so that equal colours are equal numbers."""
    values = [v for one in maps for v in one.cells.values() if math.isfinite(v)]
    low, high = min(values), max(values)
    if logarithmic and low > 0 and high > low:
        return LogNorm(low, high)
    return Normalize(min(low, 0.0), high if high > low else low + 1)
