"""Net enqueue rate and mean step time over two axes (threads × batch interval): how fast the queue is filled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from harness.analysis.points import plain
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.plots import heat, style

NAME = "enqueue-rate"


@dataclass(frozen=True)
class Surfaces:
    """Images/s put into the queue, and milliseconds per step, each over ``rows`` × ``columns``; of the points of
    ``shared`` alone, where there are others."""

    rows: str
    columns: str
    enqueue: heat.Map
    step_ms: heat.Map
    shared: str = ""

    @property
    def note(self) -> str:
        """How to read it."""
        doubt = "; ?: do not rely on it" if self.enqueue.doubtful else ""
        alone = f"; {self.shared} alone" if self.shared else ""
        return f"rank 0, after the first step, mean over repeats{alone}{doubt}"


def data(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Surfaces | str:
    """Means over the repeats, after the first step; or what is missing."""
    measured = heat.steps_over_axes(layout, table, campaign)
    if isinstance(measured, str):
        return measured
    axes = measured.axes
    found: dict[str, dict[tuple[Any, Any], list[float]]] = {"enqueue": {}, "step": {}}
    rows = [row for result in measured.results for row in result.rows]
    runs = table.loc[rows].set_index(["point_id", "repeat", "attempt"])
    for key, part in measured.steps.groupby(["point_id", "repeat", "attempt"]):
        if key in runs.index and len(part) > 3:
            run = runs.loc[key]
            place = plain(run[axes[0]]), plain(run[axes[1]])
            enqueue, step_s = rates(part.sort_values("step").iloc[1:], float(plain(run["batch_size"]) or math.nan))
            if math.isfinite(enqueue):
                found["enqueue"].setdefault(place, []).append(enqueue)
                found["step"].setdefault(place, []).append(1000 * step_s)
    if not found["enqueue"]:
        return "no buffer or queue could be read"
    mean = {name: {place: float(np.mean(v)) for place, v in cells.items()} for name, cells in found.items()}
    doubted = [result for result in measured.results if not result.trusted]
    doubtful = frozenset((result.axes.get(axes[0]), result.axes.get(axes[1])) for result in doubted) & set(mean["step"])
    enqueue_map = heat.make("put into the queue, images/s", mean["enqueue"], doubtful)
    return Surfaces(*axes, enqueue_map, heat.make("mean step time, ms", mean["step"], doubtful), measured.shared)


def rates(part: pd.DataFrame, batch: float) -> tuple[float, float]:
    """(images/s put into the queue, mean step time in s) of one rank's steps.

    What is put in is what is taken out and what the queue gains: fresh / time + batch × change of occupancy / time.
    """
    begin, end = part["begin_s"].to_numpy(float), part["end_s"].to_numpy(float)
    occupancy, fresh = part["occupancy"].to_numpy(float), part["fresh"].to_numpy(float)
    # occupancy is read when a step asks for its batch: between the first and last reading, all but the last are taken
    elapsed_s = float(begin[-1] - begin[0])
    if elapsed_s <= 0 or not math.isfinite(occupancy[0] + occupancy[-1]):
        return math.nan, math.nan
    if not math.isfinite(batch):
        batch = float(fresh[fresh > 0].mean()) if (fresh > 0).any() else math.nan
    put = float(fresh[:-1].sum()) + batch * float(occupancy[-1] - occupancy[0])
    return put / elapsed_s, float(end[-1] - begin[0]) / len(part)


def draw(surfaces: Surfaces, campaign: Campaign) -> Figure:
    """Two heat maps, each on its own logarithmic scale."""
    maps = (surfaces.enqueue, surfaces.step_ms)
    figure, axes = style.panels(2, width=heat.width(maps[0]), height=3.6)
    for ax, one in zip(axes, maps, strict=True):
        heat.draw(ax, one, surfaces.rows, surfaces.columns, heat.scale_of([one], logarithmic=True))
    style.note(figure, campaign, f"{surfaces.note}; empty: not measured")
    return figure


def figure(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(layout, table, campaign)
    return found if isinstance(found, str) else draw(found, campaign)
