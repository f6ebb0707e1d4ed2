"""Step time and queue size against step, a row per value of one axis and a column per value of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.analysis.points import plain, sort_key
from harness.analysis.scaling import label
from harness.analysis.stats import Floats
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.plots import heat, published, style

NAME = "queue-grid"
MOST_ROWS, MOST_COLUMNS = 8, 8
#: Points of one curve: means over as many equal parts of the run.
MOST_WINDOWS = 100


@dataclass(frozen=True)
class Cell:
    """Means over windows of steps, shape (windows,)."""

    step: Floats
    step_ms: Floats
    occupancy: Floats


@dataclass(frozen=True)
class Grid:
    """``study``: published step times in ms by what they were measured under; ``intervals``: whether any is known;
    ``shared``: the points of which alone, where there are others."""

    rows: str
    columns: str
    cells: dict[tuple[Any, Any], Cell]
    study: dict[str, float] = field(default_factory=dict)
    intervals: bool = False
    shared: str = ""


def data(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Grid | str:
    """The first measured run of each point; where further axes vary, the points with their first values."""
    measured = heat.steps_over_axes(layout, table, campaign)
    if isinstance(measured, str):
        return measured
    axes, steps = measured.axes, measured.steps
    if not steps["occupancy"].notna().any():
        return "no buffer or queue could be read"
    ranked = dict(iter(steps.groupby(["point_id", "repeat", "attempt"])))
    cells: dict[tuple[Any, Any], Cell] = {}
    for result in measured.results:
        run = table.loc[list(result.rows)].sort_values("repeat").iloc[0]
        part = ranked.get((run["point_id"], run["repeat"], run["attempt"]))
        if part is not None and len(part) > 2:
            place = plain(run[axes[0]]), plain(run[axes[1]])
            cells[place] = _cell(part.sort_values("step").iloc[1:])
    known = any(result.rate.known for result in measured.results)
    study = _published(layout, campaign)
    return Grid(*axes, cells, study, known, measured.shared) if cells else "no steps were recorded"


def _published(layout: CampaignLayout, campaign: Campaign) -> dict[str, float]:
    study = published.study(layout, campaign)
    if study is None or "step_ms" not in study.table:
        return {}
    return {f"published: {study.name}, {row.condition}": float(row.step_ms) for row in study.table.itertuples()}


def _cell(part: pd.DataFrame) -> Cell:
    begin, end = part["begin_s"].to_numpy(float), part["end_s"].to_numpy(float)
    durations = np.diff(end, prepend=begin[0])
    windows = np.array_split(np.arange(len(part)), min(MOST_WINDOWS, len(part)))
    occupancy = part["occupancy"].to_numpy(float)

    def mean(values: Floats) -> Floats:
        return np.array([float(np.mean(values[window])) for window in windows])

    return Cell(mean(part["step"].to_numpy(float)), 1000 * mean(durations), mean(occupancy))


def draw(grid: Grid, campaign: Campaign) -> Figure:
    """Small panels with common scales: step time on the left (logarithmic), queue on the right."""
    all_rows = sorted({row for row, _ in grid.cells}, key=lambda v: sort_key([v]))
    all_columns = sorted({column for _, column in grid.cells}, key=lambda v: sort_key([v]))
    rows, columns = style.every(all_rows, MOST_ROWS), style.every(all_columns, MOST_COLUMNS)
    size = (max(2.0 * len(columns) + 1, 6), 1.4 * len(rows) + 1)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey=True)
    highest = max(float(np.nanmax(c.occupancy, initial=1.0)) for c in grid.cells.values())
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            ax = axes[y][x]
            _draw_cell(ax, grid.cells.get((row, column)), highest, x == len(columns) - 1)
            for (name, step_ms), look in zip(grid.study.items(), (":", "-."), strict=False):
                ax.axhline(step_ms, color="black", linewidth=0.8, linestyle=look, label=name)
            if y == 0:
                ax.set_title(style.wrapped(label({grid.columns: column}), 22), fontsize=8)
            if x == 0:
                ax.set_ylabel(f"{style.wrapped(label({grid.rows: row}), 16)}\nms", fontsize=8)
            if y == len(rows) - 1:
                ax.set_xlabel("step", fontsize=8)
    style.legend_below(figure, style.handles_of(axes.ravel().tolist()))
    note = "blue: step time, ms; orange: batches ready in the queue (right scale); first repeat, rank 0"
    note += (f"; {grid.shared} alone" if grid.shared else "") + style.undrawn(grid.intervals)
    shown, everything = [0] * len(rows) * len(columns), [0] * len(all_rows) * len(all_columns)
    style.note(figure, campaign, style.of_all(shown, everything) + note)
    return figure


def _draw_cell(ax: Axes, cell: Cell | None, highest: float, labelled: bool) -> None:
    ax.tick_params(labelsize=7, which="both")
    if cell is None:
        ax.text(
            0.5, 0.5, "not measured", ha="center", va="center", transform=ax.transAxes, fontsize=7, color=style.GREY
        )
        return
    positive: Sequence[float] = np.where(cell.step_ms > 0, cell.step_ms, np.nan).tolist()
    ax.plot(cell.step, positive, color=style.COLOURS[0], linewidth=1)
    ax.set_yscale("log")
    style.plain_log(ax.yaxis)
    twin = ax.twinx()
    twin.plot(cell.step, cell.occupancy, color=style.COLOURS[1], linewidth=1)
    twin.set_ylim(0, 1.1 * highest)
    twin.grid(False)
    twin.tick_params(labelsize=7, labelright=labelled, right=labelled, colors=style.COLOURS[1])


def figure(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(layout, table, campaign)
    return found if isinstance(found, str) else draw(found, campaign)
