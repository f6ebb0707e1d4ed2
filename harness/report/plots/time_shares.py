"""Where a step's time goes: waiting for data, copying, computing, exchanging gradients, and what none of them is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from harness.analysis.points import point_results, sort_key
from harness.analysis.scaling import naming_axes, point_label
from harness.model.campaign import Campaign
from harness.report.plots import style

NAME = "where-time-goes"
PARTS = ("compute", "exchange", "copy", "wait", "other")
COLOURS = {"compute": "#009E73", "exchange": "#56B4E9", "copy": "#E69F00", "wait": "#D55E00", "other": "#bbbbbb"}
MOST_BARS = 40
#: Parts narrower than this share of the longest bar in every bar are left out of the legend.
VISIBLE_SHARE = 0.002


@dataclass(frozen=True)
class Bar:
    """Milliseconds per step of each part, mean over the repeats of a point; ``doubtful`` ones are not to rely on, of
    ``interval`` ones an interval is known."""

    label: str
    milliseconds: dict[str, float]
    doubtful: bool = False
    interval: bool = False


def data(table: pd.DataFrame, campaign: Campaign) -> list[Bar] | str:
    """A bar per measured point, or what is missing."""
    found = []
    results = [result for result in point_results(table) if result.variant == 0]
    names = naming_axes(results, campaign.varied)
    for result in results:
        runs = table.loc[list(result.rows)]
        runs = runs[runs["step_mean_s"].notna() & runs["compute_share"].notna()]
        if runs.empty:
            continue
        bar = _bar(runs, point_label(result, names), not result.trusted, result.rate.known)
        found.append((sort_key(result.axes.get(name) for name in names), bar))
    return [bar for _, bar in sorted(found, key=lambda item: item[0])] or "no run with step times"


def _bar(group: pd.DataFrame, name: str, doubtful: bool, interval: bool) -> Bar:
    step_ms = group["step_mean_s"].to_numpy(float) * 1000
    parts = {part: float(np.mean(group[f"{part}_share"].to_numpy(float) * step_ms)) for part in PARTS[:-1]}
    parts["other"] = max(float(np.mean(step_ms)) - sum(parts.values()), 0.0)
    return Bar(name, parts, doubtful, interval)


def draw(bars: list[Bar], campaign: Campaign) -> Figure:
    """Horizontal stacked bars, the first point on top."""
    everything, bars = bars, style.every(bars, MOST_BARS)
    names = [style.wrapped(bar.label, 48) for bar in bars]
    row = max(0.38, 0.18 * max(name.count("\n") + 1 for name in names))
    figure = Figure(figsize=(8, 1.4 + row * len(bars)), layout="constrained")
    ax = figure.subplots()
    position = np.arange(len(bars))[::-1]
    left = np.zeros(len(bars))
    for part in PARTS:
        width = np.array([bar.milliseconds[part] for bar in bars])
        if width.max() > VISIBLE_SHARE * max(sum(bar.milliseconds.values()) for bar in bars):
            drawn = ax.barh(position, width, left=left, color=COLOURS[part], label=part, height=0.7)
            for patch, bar in zip(drawn, bars, strict=True):
                patch.set_alpha(style.PALE if bar.doubtful else None)
        left += width
    ax.set_yticks(position, names, fontsize=8.5)
    ax.set_xlabel("mean step time in the steady window, ms")
    ax.grid(axis="y", visible=False)
    handles = [Patch(color=COLOURS[part]) for part in ax.get_legend_handles_labels()[1]]
    figure.legend(handles, ax.get_legend_handles_labels()[1], loc="outside lower center", ncols=len(PARTS))
    doubt = "; pale: do not rely on it" if any(bar.doubtful for bar in bars) else ""
    note = f"{style.of_all(bars, everything)}where a step's time goes, mean over repeats{doubt}"
    note += style.undrawn(any(bar.interval for bar in bars))
    style.note(figure, campaign, note)
    return figure


def figure(table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(table, campaign)
    return found if isinstance(found, str) else draw(found, campaign)
