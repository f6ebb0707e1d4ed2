"""Storages against each other: time for a number of images, the copy to node-local storage counted; break-even."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from harness.analysis.points import PointResult, point_results, sort_key
from harness.analysis.scaling import label, series_axes
from harness.model.campaign import Campaign
from harness.model.job import JobState
from harness.report.numbers import number
from harness.report.plots import style

NAME = "storage-staging"
MOST_PANELS = 9


@dataclass(frozen=True)
class Storage:
    """images/s of one storage with its interval's ends (NaN: none), and the seconds that staging took first."""

    name: str
    rate: float
    low: float
    high: float
    stage_s: float


@dataclass(frozen=True)
class Panel:
    """``break_even``: images after which the staged, faster storage has paid; NaN where it never does."""

    title: str
    storages: tuple[Storage, ...]
    break_even: float


def data(table: pd.DataFrame, campaign: Campaign) -> list[Panel] | str:
    """A panel for each combination of the other axes, or what is missing."""
    results = [r for r in point_results(table) if r.variant == 0 and r.runs]
    if len({r.axes.get("storage") for r in results}) < 2:
        return "fewer than two storages were measured"
    succeeded = table[table["counts"].fillna(False).astype(bool) & (table["state"] == JobState.SUCCEEDED.value)]
    staged = succeeded.groupby("point_id")["stage_s"].mean()
    others = [n for n in series_axes(results, [n for n in campaign.varied if n != "storage"], None) if n != "storage"]
    groups: dict[tuple[Any, ...], list[Storage]] = {}
    for result in results:
        stage_s = staged.get(result.point_id)
        cost_s = float(stage_s) if stage_s is not None and not pd.isna(stage_s) else 0.0
        groups.setdefault(tuple(result.axes.get(n) for n in others), []).append(_storage(result, cost_s))
    return [
        Panel(label(dict(zip(others, key, strict=True))), tuple(members), break_even(members))
        for key, members in sorted(groups.items(), key=lambda item: sort_key(item[0]))
        if len(members) > 1
    ] or "no two storages were measured with all else equal"


def _storage(result: PointResult, stage_s: float) -> Storage:
    rate = result.rate
    low, high = (rate.low, rate.high) if rate.known else (math.nan, math.nan)
    return Storage(str(result.axes["storage"]), rate.value, low, high, stage_s)


def break_even(storages: list[Storage]) -> float:
    """Images N at which stage + N / staged rate equals N / the best rate without staging."""
    direct = [s for s in storages if s.stage_s == 0]
    copied = [s for s in storages if s.stage_s > 0]
    if not direct or not copied:
        return math.nan
    slow, fast = max(direct, key=lambda s: s.rate), max(copied, key=lambda s: s.rate)
    gain_s = 1 / slow.rate - 1 / fast.rate
    return fast.stage_s / gain_s if gain_s > 0 else math.nan


def draw(panels: list[Panel], campaign: Campaign) -> Figure:
    """Elapsed time against images; a staged storage begins at the seconds of its copy. Break-even is marked."""
    everything, panels = panels, style.every(panels, MOST_PANELS)
    figure, axes = style.panels(len(panels))
    names = list(dict.fromkeys(s.name for panel in everything for s in panel.storages))
    for ax, panel in zip(axes, panels, strict=True):
        slowest = min(s.rate for s in panel.storages)
        most = 2 * panel.break_even if math.isfinite(panel.break_even) else 600 * slowest
        images = np.linspace(0, most, 50)
        for storage in panel.storages:
            colour = style.COLOURS[names.index(storage.name) % len(style.COLOURS)]
            name = storage.name + (" (staged first)" if storage.stage_s else "")
            ax.plot(images, storage.stage_s + images / storage.rate, color=colour, label=style.wrapped(name))
            if math.isfinite(storage.low):
                ends = (storage.stage_s + images / storage.high, storage.stage_s + images / storage.low)
                ax.fill_between(images, *ends, color=colour, alpha=0.15, linewidth=0)
        title = panel.title
        if math.isfinite(panel.break_even):
            ax.axvline(panel.break_even, color=style.GREY, linewidth=1, linestyle=":")
            title += f": staging pays after {number(panel.break_even, 3).rstrip('.')} images"
        elif any(s.stage_s for s in panel.storages):
            title += ": staging never pays"
        ax.set_title(style.wrapped(title.removeprefix("all: "), 44))
        ax.set_xlabel("images")
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.set_ylabel("time, s")
        ax.set_ylim(0, 1.1 * (max(s.stage_s for s in panel.storages) + most / slowest))
        ax.set_xlim(0, most)
    handles = {n: h for ax in axes for h, n in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
    style.note(figure, campaign, f"{style.of_all(panels, everything)}bands: 95 % interval of the rate")
    return figure


def figure(table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(table, campaign)
    return found if isinstance(found, str) else draw(found, campaign)
