"""Speed-up against a resource: how much of each further core or node arrives as images/s. The ideal line is drawn along
what computes alone: nobody expects twice the rate of twice the loader workers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.analysis.scaling import COMPUTING, RESOURCES
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.plots import published, style
from harness.report.plots.along_axis import MOST_PANELS, Curves, Line, Panel, curves, draw_panel, finish, top

NAME = "speed-up"


def data(table: pd.DataFrame, campaign: Campaign) -> Curves | str:
    """Speed-up against the smallest measured value, or what is missing."""
    found = curves(table, campaign, lambda step: step.speedup, against_base=True)
    if isinstance(found, str):
        return found
    if found.axis not in RESOURCES:
        return f"{found.axis} is no resource, so no ideal speed-up exists"
    if all(len(line.x) < 2 for panel in found.panels for line in panel.lines):
        return f"no series has two values of {found.axis}"
    return _named(found)


def _named(found: Curves) -> Curves:
    """The only line of a panel has no name among others, and needs one beside the ideal."""
    panels = [
        replace(panel, lines=tuple(replace(line, label=line.label or "measured") for line in panel.lines))
        for panel in found.panels
    ]
    return replace(found, panels=tuple(panels), labels=tuple(label or "measured" for label in found.labels))


def study_line(study: published.Study | None, axis: str) -> Line | None:
    """A study's speed-up against its own first value, as the measured lines are; None where it has no such axis."""
    if study is None or axis not in study.table:
        return None
    best = study.table.groupby(axis)["images_per_second"].max().sort_index()
    x, y = tuple(float(v) for v in best.index), tuple(float(v) for v in best / best.iloc[0])
    nothing = tuple(math.nan for _ in x)
    return Line(f"published: {study.name}", x, y, nothing, nothing, tuple(False for _ in x))


def draw(curves: Curves, campaign: Campaign, study: Line | None = None) -> Figure:
    shown = style.every(list(curves.panels), MOST_PANELS)
    figure, axes = style.panels(len(shown))
    for ax, panel in zip(axes, shown, strict=True):
        if curves.axis in COMPUTING:
            _draw_ideal(ax, panel)
        draw_panel(ax, curves, panel)
        if study is not None:
            ax.plot(study.x, study.y, color="black", marker="x", linestyle=":", label=style.wrapped(study.label))
            style.integer_ticks(ax, [x for line in (*panel.lines, study) for x in line.x])
        if ax.get_xscale() == "log":
            ax.set_yscale("log", base=2)
            style.plain_powers(ax.yaxis)
        else:
            ax.set_ylim(0, _top(panel, study, curves.axis in COMPUTING))
    finish(figure, axes, curves, campaign, "speed-up")
    return figure


def _top(panel: Panel, study: Line | None, with_ideal: bool) -> float:
    """The upper end of the y axis: the study is in it, the ideal as far as it does not flatten what was measured."""
    highest = max(y for line in panel.lines for y in line.y)
    ends = [line.x[-1] / line.x[0] for line in panel.lines if line.x[0] > 0]
    ideal = max(ends, default=1.0) if with_ideal else 1.0
    return max([top(panel), min(1.05 * ideal, 1.6 * highest), *(1.06 * y for y in (study.y if study else ()))])


def ideals(lines: Iterable[Sequence[float]]) -> list[tuple[list[float], list[float]]]:
    """x and ideal speed-up from each beginning of lines, given by their x: each is against its own first point."""
    known = [x for x in lines if x and x[0] > 0]
    found = []
    for base in sorted({x[0] for x in known}):
        ends = sorted({value for x in known for value in x if value >= base})
        found.append((ends, [value / base for value in ends]))
    return found


def _draw_ideal(ax: Axes, panel: Panel) -> None:
    for x, y in ideals(line.x for line in panel.lines):
        ax.plot(x, y, color=style.GREY, linewidth=1, linestyle=(0, (1, 2)), label="ideal")


def figure(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(table, campaign)
    if isinstance(found, str):
        return found
    return draw(found, campaign, study_line(published.study(layout, campaign), found.axis))
