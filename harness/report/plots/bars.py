"""Bars over an axis whose values are names (encoding, storage, pipeline), grouped by the other axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from harness.analysis.points import point_results, sort_key
from harness.analysis.scaling import label, series_axes
from harness.analysis.stats import Estimate
from harness.model.campaign import Campaign
from harness.report.grid import text
from harness.report.plots import style

MOST_GROUPS = 24
#: The axis ends at this many times the highest bar; longer intervals run out of it.
MOST_HEADROOM = 2.0


@dataclass(frozen=True)
class Bars:
    """``values[group][name]`` is the estimate of a bar; absent where it was not measured."""

    axis: str
    names: tuple[str, ...]
    groups: tuple[str, ...]
    values: tuple[dict[str, Estimate], ...]
    doubtful: frozenset[tuple[str, str]]


def data(table: pd.DataFrame, campaign: Campaign, axis: str) -> Bars | str:
    """images/s of each value of ``axis``, a group for each combination of the others, or what is missing."""
    results = [r for r in point_results(table) if r.variant == 0 and r.runs]
    names = tuple(dict.fromkeys(text(r.axes.get(axis)) for r in results))
    if len(names) < 2:
        return f"fewer than two values of {axis} were measured"
    others = [name for name in series_axes(results, [n for n in campaign.varied if n != axis], None) if name != axis]
    groups: dict[tuple[Any, ...], dict[str, Estimate]] = {}
    doubtful = set()
    for result in sorted(results, key=lambda r: sort_key(r.axes.get(name) for name in others)):
        key = tuple(result.axes.get(name) for name in others)
        # pipelines may follow from the value: of several points of one bar, the fastest stands for it
        best = groups.setdefault(key, {}).get(text(result.axes.get(axis)))
        if best is None or result.rate.value > best.value:
            groups[key][text(result.axes.get(axis))] = result.rate
            if not result.trusted:
                doubtful.add((label(dict(zip(others, key, strict=True))), text(result.axes.get(axis))))
    labels = tuple(label(dict(zip(others, key, strict=True))) for key in groups)
    return Bars(axis, names, labels, tuple(groups.values()), frozenset(doubtful))


def draw(bars: Bars, campaign: Campaign) -> Figure:
    """Horizontal groups; intervals as thin lines, bars not to rely on pale."""
    places = style.every(list(range(len(bars.groups))), MOST_GROUPS)
    figure = Figure(figsize=(8, 1.6 + len(places) * (0.22 * len(bars.names) + 0.2)), layout="constrained")
    ax = figure.subplots()
    height = 0.8 / len(bars.names)
    for index, name in enumerate(bars.names):
        for row, place in enumerate(places):
            estimate = bars.values[place].get(name)
            if estimate is None:
                continue
            y = -row - (index - (len(bars.names) - 1) / 2) * height
            colour = style.COLOURS[index % len(style.COLOURS)]
            pale = 0.35 if (bars.groups[place], name) in bars.doubtful else 1.0
            ax.barh(y, estimate.value, height * 0.92, color=colour, alpha=pale, label=name, edgecolor="white",
                    hatch=_HATCHES[index // len(style.COLOURS) % len(_HATCHES)])  # fmt: skip
            if estimate.known:
                ax.plot([estimate.low, estimate.high], [y, y], color="black", linewidth=1)
    _finish(figure, bars, places, campaign)
    return figure


_HATCHES = ("", "//", "..")


def _finish(figure: Figure, bars: Bars, places: Sequence[int], campaign: Campaign) -> None:
    ax = figure.axes[0]
    highest = max(e.value for group in bars.values for e in group.values())
    widest = max((e.high for group in bars.values for e in group.values() if e.known), default=math.nan)
    clipped = widest > MOST_HEADROOM * highest
    ax.set_xlim(0, MOST_HEADROOM * highest if clipped else 1.05 * np.nanmax([highest, widest]))
    ax.set_yticks([-row for row in range(len(places))], [style.wrapped(bars.groups[p], 40) for p in places])
    ax.set_xlabel("images/s (steady)")
    ax.grid(axis="y", visible=False)
    handles = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    columns = max(1, min(len(handles), 80 // (max(map(len, handles)) + 4)))
    figure.legend(handles.values(), [style.wrapped(n) for n in handles], loc="outside lower center", ncols=columns)
    parts = ["lines: 95 % interval" + (", some longer than shown" if clipped else "")]
    parts += ["pale: do not rely on it"] if bars.doubtful else []
    style.note(figure, campaign, style.of_all(places, bars.groups) + "; ".join(parts))
