"""Storages against each other: time for a number of images, the copy to node-local storage counted; break-even."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from harness.analysis import stats
from harness.analysis.points import PointResult, point_results, sort_key
from harness.analysis.scaling import label, series_axes
from harness.analysis.stats import Estimate
from harness.model.campaign import Campaign
from harness.report.numbers import number
from harness.report.plots import style

NAME = "storage-staging"
MOST_PANELS = 9


@dataclass(frozen=True)
class Storage:
    """images/s of one storage, and the seconds that staging took first; ``doubtful``: not to rely on."""

    name: str
    estimate: Estimate
    stage_s: float
    doubtful: bool = False

    @property
    def rate(self) -> float:
        return self.estimate.value


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
    others = [n for n in series_axes(results, [n for n in campaign.varied if n != "storage"], None) if n != "storage"]
    groups: dict[tuple[Any, ...], list[Storage]] = {}
    for result in results:
        stage_s = table.loc[list(result.rows), "stage_s"].mean()
        cost_s = 0.0 if pd.isna(stage_s) else float(stage_s)
        groups.setdefault(tuple(result.axes.get(n) for n in others), []).append(_storage(result, cost_s))
    return [
        Panel(label(dict(zip(others, key, strict=True))), tuple(members), break_even(members))
        for key, members in sorted(groups.items(), key=lambda item: sort_key(item[0]))
        if len(members) > 1
    ] or "no two storages were measured with all else equal"


def _storage(result: PointResult, stage_s: float) -> Storage:
    return Storage(str(result.axes["storage"]), result.rate, stage_s, not result.trusted)


def break_even(storages: Sequence[Storage]) -> float:
    """Images N at which stage + N / staged rate equals N / the best rate without staging."""
    pair = direct_and_staged(storages)
    gain_s = 1 / pair[0].rate - 1 / pair[1].rate if pair else 0.0
    return pair[1].stage_s / gain_s if pair and gain_s > 0 else math.nan


def direct_and_staged(storages: Sequence[Storage]) -> tuple[Storage, Storage] | None:
    """The fastest that is read where it lies, and the fastest that is staged; None where one of them is missing."""
    direct = [s for s in storages if s.stage_s == 0]
    copied = [s for s in storages if s.stage_s > 0]
    if not direct or not copied:
        return None
    return max(direct, key=lambda s: s.rate), max(copied, key=lambda s: s.rate)


def most_images(panel: Panel) -> float:
    """Up to where the lines are drawn: twice the break-even, or ten minutes of the slowest storage."""
    return 2 * panel.break_even if math.isfinite(panel.break_even) else 600 * min(s.rate for s in panel.storages)


def verdict(panel: Panel) -> str:
    """Whether staging pays, as far as the intervals tell; empty where nothing was staged."""
    pair = direct_and_staged(panel.storages)
    if any(storage.doubtful for storage in pair or panel.storages):
        return "a rate is not to be relied on, see `harness check`"
    if pair is None:
        return ""
    gain = stats.ratio(pair[1].estimate, pair[0].estimate)
    told = gain.known and gain.differs_from(1.0)
    if not math.isfinite(panel.break_even):
        return "staging never pays" if told else "no gain from staging is seen"
    after = f"after {number(panel.break_even, 3).rstrip('.')} images"
    return f"staging pays {after}" if told else f"staging may pay {after}: the rates cannot be told apart"


def draw(panels: list[Panel], campaign: Campaign) -> Figure:
    """Elapsed time against images; a staged storage begins at the seconds of its copy. Break-even is marked."""
    everything, panels = panels, style.every(panels, MOST_PANELS)
    figure, axes = style.panels(len(panels))
    names = list(dict.fromkeys(s.name for panel in everything for s in panel.storages))
    for ax, panel in zip(axes, panels, strict=True):
        _draw_panel(ax, panel, names)
    handles = style.handles_of(axes)
    if len(handles) <= style.MOST_NAMED:
        style.legend_below(figure, handles)
    crowd = f"; {len(names)} storages, named in the table" if len(handles) > style.MOST_NAMED else ""
    bands = style.interval_words(
        s.estimate.rests_on == "within" for panel in panels for s in panel.storages if s.estimate.known
    )
    note = f"{style.of_all(panels, everything, 'panels')}bands of the rate: {bands}{crowd}"
    style.note(figure, campaign, note)
    return figure


def _draw_panel(ax: Axes, panel: Panel, names: list[str]) -> None:
    most = most_images(panel)
    images = np.linspace(0, most, 50)
    for storage in panel.storages:
        look = style.series_style(names.index(storage.name)) | {"marker": ""}
        name = storage.name + (" (staged first)" if storage.stage_s else "")
        ax.plot(images, storage.stage_s + images / storage.rate, label=style.wrapped(name), **look)
        if storage.estimate.known:
            low, high = storage.estimate.low, storage.estimate.high
            ends = (storage.stage_s + images / high, storage.stage_s + images / low)
            ax.fill_between(images, *ends, color=look["color"], alpha=0.15, linewidth=0)
    if math.isfinite(panel.break_even):
        ax.axvline(panel.break_even, color=style.GREY, linewidth=1, linestyle=":")
    title = ": ".join(part for part in (panel.title.removeprefix("all"), verdict(panel)) if part)
    ax.set_title(style.wrapped(title, 44))
    ax.set_xlabel("images")
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.set_ylabel("time, s")
    slowest = min(s.rate for s in panel.storages)
    ax.set_ylim(0, 1.1 * (max(s.stage_s for s in panel.storages) + most / slowest))
    ax.set_xlim(0, most)


def figure(table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(table, campaign)
    return found if isinstance(found, str) else draw(found, campaign)
