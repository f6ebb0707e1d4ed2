"""Step time against step, a panel per point: warm-up, transient and steady window; buffer occupancy below it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from harness.analysis.points import plain, point_results, sort_key
from harness.analysis.scaling import label, naming_axes
from harness.analysis.stats import Floats
from harness.model.campaign import Campaign
from harness.report.plots import style

NAME = "step-time"
MOST_PANELS = 12


@dataclass(frozen=True)
class Trace:
    """One run, rank 0: arrays of shape (steps,). ``occupancy`` is all NaN where no buffer could be read."""

    title: str
    step: Floats
    step_s: Floats
    occupancy: Floats
    steady_from: float | None


def data(steps: pd.DataFrame, table: pd.DataFrame, campaign: Campaign) -> list[Trace] | str:
    """The first counting run of each point, or what is missing."""
    runs = table[table["counts"].fillna(False).astype(bool)].sort_values(["repeat"])
    runs = runs.drop_duplicates("point_id")
    names = naming_axes(point_results(table), campaign.varied)
    order = sorted(runs.index, key=lambda i: sort_key(plain(runs.at[i, name]) for name in names))
    traces = []
    ranked = dict(iter(steps[steps["rank"] == 0].groupby(["point_id", "repeat", "attempt"])))
    for index in order:
        run = runs.loc[index]
        part = ranked.get((run["point_id"], run["repeat"], run["attempt"]))
        if part is not None and len(part) > 1:
            title = label({name: plain(run[name]) for name in names if plain(run[name]) not in (None, "none")})
            traces.append(_trace(part.sort_values("step"), title))
    if not traces:
        return "no steps were recorded"
    return traces


def _trace(part: pd.DataFrame, title: str) -> Trace:
    begin, end = part["begin_s"].to_numpy(float), part["end_s"].to_numpy(float)
    steady = part.loc[part["part"] == "steady", "step"]
    return Trace(
        title=title,
        step=part["step"].to_numpy(float),
        step_s=np.diff(end, prepend=begin[0]),
        occupancy=part["occupancy"].to_numpy(float),
        steady_from=float(steady.iloc[0]) if len(steady) else None,
    )


def draw(traces: list[Trace], campaign: Campaign) -> Figure:
    """Step times as dots on a logarithmic scale where the first step dwarfs the rest; the transient is shaded."""
    everything, traces = traces, style.every(traces, MOST_PANELS)
    figure, axes = style.panels(len(traces), height=2.6)
    for ax, trace in zip(axes, traces, strict=True):
        _draw_trace(ax, trace)
    buffered = any(np.isfinite(trace.occupancy).any() for trace in traces)
    note = f"{style.of_all(traces, everything)}first repeat, rank 0; grey: left out of the steady window"
    style.note(figure, campaign, note + ("; line: batches ready in the buffer" if buffered else ""))
    return figure


def _draw_trace(ax: Axes, trace: Trace) -> None:
    if trace.steady_from is not None and trace.steady_from > trace.step[0]:
        ax.axvspan(trace.step[0] - 0.5, trace.steady_from - 0.5, color="#eeeeee", zorder=0)
    ax.plot(trace.step, trace.step_s * 1000, ".", color=style.COLOURS[0], markersize=3.5, zorder=3)
    positive = trace.step_s[trace.step_s > 0]
    if len(positive) and positive.max() > 8 * np.median(positive):
        ax.set_yscale("log")
        style.plain_log(ax.yaxis)
    else:
        ax.set_ylim(0, 1.08 * float(np.max(trace.step_s)) * 1000 or None)
    ax.set_xlabel("step")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylabel("step time, ms")
    ax.set_title(style.wrapped(trace.title, 36), fontsize=9)
    if np.isfinite(trace.occupancy).any():
        twin = ax.twinx()
        twin.plot(trace.step, trace.occupancy, color=style.COLOURS[1], linewidth=1, drawstyle="steps-post")
        twin.set_ylabel("batches ready", color=style.COLOURS[1])
        twin.set_ylim(0, max(float(np.nanmax(trace.occupancy)) * 1.15, 1))
        twin.yaxis.set_major_locator(MaxNLocator(integer=True))
        twin.grid(False)


def figure(steps: pd.DataFrame, table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(steps, table, campaign)
    return found if isinstance(found, str) else draw(found, campaign)
