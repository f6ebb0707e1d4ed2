"""Speed-up against a resource, with the ideal line: how much of each further core or node arrives as images/s."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from harness.analysis.scaling import RESOURCES
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.plots import published, style
from harness.report.plots.along_axis import Curves, curves, draw_panel, finish

NAME = "speed-up"


def data(table: pd.DataFrame, campaign: Campaign) -> Curves | str:
    """Speed-up against the smallest measured value, or what is missing."""
    found = curves(table, campaign, lambda step: step.speedup)
    if isinstance(found, str):
        return found
    if found.axis not in RESOURCES:
        return f"{found.axis} is no resource, so no ideal speed-up exists"
    if all(len(line.x) < 2 for panel in found.panels for line in panel.lines):
        return f"no series has two values of {found.axis}"
    return found


def draw(curves: Curves, campaign: Campaign, study: published.Study | None = None) -> Figure:
    figure, axes = style.panels(len(curves.panels))
    for ax, panel in zip(axes, curves.panels, strict=True):
        for base in sorted({line.x[0] for line in panel.lines if line.x[0] > 0}):
            ends = sorted({x for line in panel.lines for x in line.x if x >= base})
            ax.plot(ends, [x / base for x in ends], color=style.GREY, linewidth=1, linestyle=(0, (1, 2)), label="ideal")
        draw_panel(ax, curves, panel)
        if study is not None and curves.axis in study.table:
            # against its own first value, as the measured lines are
            rows = study.table.sort_values(curves.axis)
            x, rate = rows[curves.axis], rows["images_per_second"]
            look: Any = {"color": "black", "marker": "x", "linestyle": ":"}
            ax.plot(x, rate / rate.iloc[0], label=f"published: {study.name}", **look)
        if ax.get_xscale() == "log":
            ax.set_yscale("log", base=2)
            style.plain_powers(ax.yaxis)
        else:
            ax.set_ylim(bottom=0)
    finish(figure, axes, curves, campaign, "speed-up")
    return figure


def figure(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(table, campaign)
    return found if isinstance(found, str) else draw(found, campaign, published.study(layout, campaign))
