"""images/s as lines along one of two axes, a line per value of the other (threads × prefetch), published beside."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from harness.analysis.points import point_results, sort_key
from harness.analysis.scaling import label, primary_axis
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.plots import axis_grid, heat
from harness.report.plots.along_axis import Curves, Line, Panel, draw_all_panels

NAME = "two-axes-lines"


@dataclass(frozen=True)
class Lines:
    """``curves`` has a panel per map measured here; ``study`` is the published one, on a scale of its own."""

    curves: Curves
    study: Panel | None = None


def data(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Lines | str:
    """The lines of each map of :mod:`harness.report.plots.axis_grid`, or what is missing.

    They go along the rows' axis where a study is drawn beside, as it was published; otherwise along the axis that the
    figures along one axis do not follow.
    """
    grids = axis_grid.data(layout, table, campaign)
    if isinstance(grids, str):
        return grids
    maps = [*grids.maps, *([grids.study] if grids.study else [])]
    along, across = grids.rows, grids.columns
    if grids.study is None and primary_axis(point_results(table), campaign.varied) == grids.rows:
        maps, along, across = [heat.transposed(one) for one in maps], across, along
    values = sorted({column for one in maps for column in one.columns}, key=lambda v: sort_key([v]))
    panels = [panel for one in maps if (panel := _panel(one, across)).lines]
    if not panels:
        return "no point has a rate yet"
    study = panels.pop() if grids.study else None
    return Lines(Curves(along, tuple(panels), tuple(label({across: value}) for value in values)), study)


def _panel(one: heat.Map, columns: str) -> Panel:
    lines = []
    for column in one.columns:
        places = [(row, column) for row in one.rows if row is not None and (row, column) in one.cells]
        places = [place for place in places if math.isfinite(one.cells[place])]
        ends = [one.bounds.get(place, (math.nan, math.nan)) for place in places]
        if places:
            lines.append(
                Line(
                    label=label({columns: column}),
                    x=tuple(float(row) for row, _ in places),
                    y=tuple(one.cells[place] for place in places),
                    low=tuple(low for low, _ in ends),
                    high=tuple(high for _, high in ends),
                    doubtful=tuple(place in one.doubtful for place in places),
                    once=tuple(place in one.once for place in places),
                )
            )
    return Panel(one.title, tuple(lines), ())


def figure(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(layout, table, campaign)
    if isinstance(found, str):
        return found
    panels = (*found.curves.panels, *([found.study] if found.study else []))
    return draw_all_panels(Curves(found.curves.axis, panels, found.curves.labels), campaign, "images/s (steady)")
