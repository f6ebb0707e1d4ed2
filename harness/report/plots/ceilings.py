"""Roofline-like: measured images/s along an axis under the ceilings that its own step times imply."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from harness.analysis.points import point_results
from harness.analysis.scaling import label, primary_axis, series_along
from harness.model.campaign import Campaign
from harness.model.job import JobState
from harness.report.plots import style

NAME = "ceilings"
MOST_PANELS = 9
#: Share of waiting above which the input pipeline is what limits: its ceiling is then the rate itself.
WAITING = 0.2


@dataclass(frozen=True)
class Panel:
    """One series. ``compute``: the rate without waiting and copying; ``copied``: without waiting alone."""

    title: str
    x: tuple[float, ...]
    rate: tuple[float, ...]
    copied: tuple[float, ...]
    compute: tuple[float, ...]
    waiting: tuple[bool, ...]


def data(table: pd.DataFrame, campaign: Campaign) -> tuple[str, list[Panel]] | str:
    """(axis, panels), or what is missing."""
    results = point_results(table)
    axis = primary_axis(results, campaign.varied)
    if axis is None:
        return "no numeric axis was varied"
    counted = table["counts"].fillna(False).astype(bool) & (table["state"] == JobState.SUCCEEDED.value)
    shares = table[counted & table["wait_share"].notna()].groupby("point_id")[["wait_share", "copy_share"]].mean()
    panels = []
    for series in series_along(results, campaign.varied, axis):
        steps = [s for s in series.steps if s.result.point_id in shares.index]
        if len(steps) < 2:
            continue
        wait = [min(float(shares.at[s.result.point_id, "wait_share"]), 0.999) for s in steps]
        copy = [float(shares.at[s.result.point_id, "copy_share"]) for s in steps]
        rate = [s.result.rate.value for s in steps]
        copied = tuple(r / (1 - w) for r, w in zip(rate, wait, strict=True))
        own = [max(1 - w - c, 1e-3) for w, c in zip(wait, copy, strict=True)]
        compute = tuple(r / o for r, o in zip(rate, own, strict=True))
        x = tuple(s.x for s in steps)
        base = series.steps[0].result.axes
        title = label(series.key) if series.key else str(base.get("workload"))
        panels.append(Panel(title, x, tuple(rate), copied, compute, tuple(w > WAITING for w in wait)))
    return (axis, panels) if panels else "no series has two points with step times"


def draw(axis: str, panels: list[Panel], campaign: Campaign) -> Figure:
    """Rate as markers, filled where training waits for data; ceilings as lines above it."""
    everything, panels = panels, style.every(panels, MOST_PANELS)
    figure, axes = style.panels(len(panels))
    for ax, panel in zip(axes, panels, strict=True):
        ax.plot(panel.x, panel.compute, color=style.COLOURS[2], label="ceiling: computing and exchange alone")
        if max(np.array(panel.compute) / np.array(panel.copied)) > 1.01:
            ax.plot(panel.x, panel.copied, color=style.COLOURS[5], linestyle="--", label="ceiling: no waiting for data")
        ax.plot(panel.x, panel.rate, color=style.COLOURS[0], marker="o", markerfacecolor="white", label="measured")
        limited = [(x, y) for x, y, waits in zip(panel.x, panel.rate, panel.waiting, strict=True) if waits]
        if limited:
            ax.plot(
                *zip(*limited, strict=True),
                "o",
                color=style.COLOURS[1],
                label="measured, limited by the input pipeline",
            )
        style.integer_ticks(ax, list(panel.x))
        ax.set_yscale("log")
        style.plain_log(ax.yaxis)
        low, high = min(panel.rate), max(v for v in panel.compute if math.isfinite(v))
        ax.set_ylim(low / 1.5, high * 1.5)
        ax.set_xlabel(style.named(axis))
        ax.set_title(style.wrapped(panel.title, 44))
    for ax in axes[:: style.ACROSS]:
        ax.set_ylabel("images/s (steady)")
    handles = {n: h for ax in axes for h, n in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=min(len(panels), 2))
    note = "ceilings from the waits recorded in the same runs; where data are read while computing, they may be lower"
    style.note(figure, campaign, style.of_all(panels, everything) + note)
    return figure


def figure(table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(table, campaign)
    return found if isinstance(found, str) else draw(*found, campaign)
