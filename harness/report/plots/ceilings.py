"""Roofline-like: measured images/s along an axis under the ceilings that its own step times imply."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.analysis.points import point_results
from harness.analysis.scaling import label, primary_axis, series_along
from harness.model.campaign import Campaign
from harness.report.plots import style

NAME = "ceilings"
MOST_PANELS = 9
#: Share of waiting above which the input pipeline is what limits: its ceiling is then the rate itself.
WAITING = 0.2
#: A panel whose values spread by more than this factor has a logarithmic scale.
LOGARITHMIC = 8.0


@dataclass(frozen=True)
class Panel:
    """One series. ``compute``: the rate without waiting and copying; ``copied``: without waiting alone; ``doubtful``
    marks points not to rely on."""

    title: str
    x: tuple[float, ...]
    rate: tuple[float, ...]
    copied: tuple[float, ...]
    compute: tuple[float, ...]
    waiting: tuple[bool, ...]
    doubtful: tuple[bool, ...]
    intervals: bool = False


def data(table: pd.DataFrame, campaign: Campaign) -> tuple[str, list[Panel]] | str:
    """(axis, panels), or what is missing."""
    results = point_results(table)
    axis = primary_axis(results, campaign.varied)
    if axis is None:
        return "no numeric axis was varied"
    panels = []
    for series in series_along(results, campaign.varied, axis):
        steps = [s for s in series.steps if "wait_share" in s.result.means]
        if len(steps) < 2:
            continue
        wait = [min(s.result.means["wait_share"], 0.999) for s in steps]
        copy = [s.result.means.get("copy_share", 0.0) for s in steps]
        rate = [s.result.rate.value for s in steps]
        copied = tuple(r / (1 - w) for r, w in zip(rate, wait, strict=True))
        own = [max(1 - w - c, 1e-3) for w, c in zip(wait, copy, strict=True)]
        compute = tuple(r / o for r, o in zip(rate, own, strict=True))
        x = tuple(s.x for s in steps)
        base = series.steps[0].result.axes
        title = label(series.key) if series.key else str(base.get("workload"))
        doubtful = tuple(not s.result.trusted for s in steps)
        waiting, known = tuple(w > WAITING for w in wait), any(s.result.rate.known for s in steps)
        panels.append(Panel(title, x, tuple(rate), copied, compute, waiting, doubtful, known))
    return (axis, panels) if panels else "no series has two points with step times"


def draw(axis: str, panels: list[Panel], campaign: Campaign) -> Figure:
    """Rate as markers, squares where training waits for data, hollow where doubtful; ceilings as lines above it."""
    everything, panels = panels, style.every(panels, MOST_PANELS)
    figure, axes = style.panels(len(panels))
    for ax, panel in zip(axes, panels, strict=True):
        _draw_panel(ax, panel)
        ax.set_xlabel(style.named(axis))
    for ax in axes[:: style.ACROSS]:
        ax.set_ylabel("images/s (steady)")
    style.legend_below(figure, style.handles_of(axes))
    note = "ceilings from the waits recorded in the same runs; where data are read while computing, they may be lower"
    note += style.undrawn(any(panel.intervals for panel in panels))
    if any(doubt for panel in panels for doubt in panel.doubtful):
        note += "; hollow: do not rely on it"
    style.note(figure, campaign, style.of_all(panels, everything, "series") + note)
    return figure


def _draw_panel(ax: Axes, panel: Panel) -> None:
    ax.plot(panel.x, panel.compute, color=style.COLOURS[2], label="ceiling: computing and exchange alone")
    if max(np.array(panel.compute) / np.array(panel.copied)) > 1.01:
        ax.plot(panel.x, panel.copied, color=style.COLOURS[5], linestyle="--", label="ceiling: no waiting for data")
    ax.plot(panel.x, panel.rate, color=style.COLOURS[0], marker="o", label="measured")
    look: Any = {"color": style.COLOURS[1], "marker": "s", "linestyle": "none"}
    limited = [(x, y) for x, y, waits in zip(panel.x, panel.rate, panel.waiting, strict=True) if waits]
    if limited:
        ax.plot(*zip(*limited, strict=True), label="measured, limited by the input pipeline", **look)
    for x, y, waits, doubt in zip(panel.x, panel.rate, panel.waiting, panel.doubtful, strict=True):
        if doubt:
            plain: Any = look if waits else look | {"color": style.COLOURS[0], "marker": "o"}
            ax.plot([x], [y], markerfacecolor="white", zorder=4, **plain)
    style.integer_ticks(ax, list(panel.x))
    low, high = min(panel.rate), max(v for v in panel.compute if math.isfinite(v))
    if high > LOGARITHMIC * low:
        ax.set_yscale("log")
        style.plain_log(ax.yaxis)
        ax.set_ylim(low / 1.5, high * 1.5)
    else:
        ax.set_ylim(0, 1.1 * high)
    ax.set_title(style.wrapped(panel.title, 44))


def figure(table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(table, campaign)
    return found if isinstance(found, str) else draw(*found, campaign)
