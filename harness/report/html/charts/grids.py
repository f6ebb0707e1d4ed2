"""Charts over two axes: images/s as heat maps beside the published one, and how fast a queue is filled."""

from __future__ import annotations

import math

import pandas as pd

from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.grid import text
from harness.report.html.charts.base import Chart, panelled, safe
from harness.report.numbers import number
from harness.report.plots import axis_grid, heat, queue_surfaces, style

#: Pixels of a row, and of what stands around them.
_ROW, _AROUND = 34, 130


def heat_maps(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Chart] | str:
    """A map for each combination of the other axes on one scale; the published one on its own."""
    found = axis_grid.data(layout, table, campaign)
    if isinstance(found, str):
        return found
    values = [v for one in found.maps for v in one.cells.values() if math.isfinite(v)]
    scale = (min(0.0, *values), max(values))
    doubt = "; ?: do not rely on it" if any(one.doubtful for one in found.maps) else ""
    note = f"images/s (steady); empty: not measured{doubt}{style.undrawn(any(one.bounds for one in found.maps))}"
    panels = [(one.title, _chart(one, found.rows, found.columns, note, scale)) for one in found.maps]
    charts = panelled(f"{_over(found.rows, found.columns)}", panels)
    if found.study is not None:
        apart = "images/s as published, on another machine: a colour scale of its own"
        charts += panelled(found.study.title, [("", _chart(found.study, found.rows, found.columns, apart))])
    return charts


def queue_maps(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Chart] | str:
    found = queue_surfaces.data(layout, table, campaign)
    if isinstance(found, str):
        return found
    note = f"{found.note}; colours by the logarithm"
    maps = (found.enqueue, found.step_ms)
    panels = [(one.title, _chart(one, found.rows, found.columns, note, logarithmic=True)) for one in maps]
    return panelled(_over(found.rows, found.columns), panels)


def _over(rows: str, columns: str) -> str:
    return f"{style.named(rows)} × {style.named(columns)}"


def _chart(
    one: heat.Map,
    rows: str,
    columns: str,
    note: str,
    scale: tuple[float, float] | None = None,
    logarithmic: bool = False,
) -> Chart:
    down, across = safe(style.named(rows)), safe(style.named(columns))
    cells = [[one.cells.get((row, column), math.nan) for column in one.columns] for row in one.rows]
    shown = [[_shown(one, row, column) for column in one.columns] for row in one.rows]
    trace: Chart = {
        "type": "heatmap",
        "x": [text(column) for column in one.columns],
        "y": [text(row) for row in one.rows],
        "z": [[_colour(value, logarithmic) for value in row] for row in cells],
        "text": shown,
        "colorscale": "Viridis",
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
        "hovertemplate": f"{down} %{{y}}, {across} %{{x}}: %{{text}}<extra></extra>",
    }
    if scale is not None:
        trace |= {"zmin": scale[0], "zmax": scale[1]}
    axes = {
        "xaxis": {"type": "category", "title": {"text": across}, "showgrid": False},
        "yaxis": {"type": "category", "title": {"text": down}, "showgrid": False},
    }
    height = max(300, min(_AROUND + _ROW * len(one.rows), 900))
    layout = axes | {"height": height, "showlegend": False, "annotations": _numbers(trace, one, shown)}
    return {"note": note, "traces": [trace], "layout": layout}


def _numbers(trace: Chart, one: heat.Map, shown: list[list[str]]) -> list[Chart]:
    """The cells' numbers in an ink that stands out: plotly's own is grey on middle colours."""
    if len(one.columns) > heat.MOST_NUMBERED:
        return []
    known = [v for row in trace["z"] for v in row if v is not None]
    low, high = trace.get("zmin", min(known, default=0.0)), trace.get("zmax", max(known, default=1.0))
    return [
        {
            "x": x,
            "y": y,
            "text": shown[y][x],
            "showarrow": False,
            "font": {"color": heat.ink((v - low) / (high - low or 1))},
        }
        for y, row in enumerate(trace["z"])
        for x, v in enumerate(row)
        if v is not None
    ]


def _shown(one: heat.Map, row: object, column: object) -> str:
    value = one.cells.get((row, column), math.nan)
    if not math.isfinite(value):
        return ""
    return number(value, 3).rstrip(".") + (" ?" if (row, column) in one.doubtful else "")


def _colour(value: float, logarithmic: bool) -> float | None:
    if not math.isfinite(value) or (logarithmic and value <= 0):
        return None
    return math.log10(value) if logarithmic else value
