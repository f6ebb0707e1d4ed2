"""Charts of one point at a time: step time and queue against step, CPU and GPU utilisation over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.html.charts.base import Chart
from harness.report.plots import style, utilisation

#: Samples of all points together, and of one point at least.
MOST_SAMPLES, LEAST_OF_ONE = 60_000, 40


def steps(points: Sequence[Mapping[str, Any]], order: Sequence[int]) -> list[Chart] | str:
    """A menu of points; the page draws the trace that the point's first run has in the page's data."""
    traced = [place for place in order if any(run["trace"] for run in points[place]["runs"])]
    if not traced:
        return "no steps were recorded"
    choices = [{"label": points[place]["label"], "point": place} for place in traced]
    note = "rank 0 of the first run that succeeded; grey: left out of the steady window"
    return [{"title": "Step time and queue against step", "note": note, "wide": False, "choices": choices}]


def utilisations(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Chart] | str:
    found = utilisation.data(layout, table, campaign)
    if isinstance(found, str):
        return found
    most = max(MOST_SAMPLES // len(found), LEAST_OF_ONE)
    choices = [{"label": trace.title} | _chart(trace, most) for trace in found]
    note = "first repeat, first node; CPU: mean over all of the node's"
    return [{"title": "Utilisation over time", "note": note, "wide": False, "choices": choices}]


def _chart(trace: utilisation.Trace, most: int) -> Chart:
    places = style.every(list(range(len(trace.seconds))), most)
    seconds = [round(float(trace.seconds[place]), 2) for place in places]
    traces = []
    for index, (name, values) in enumerate((("CPU", trace.cpu), ("GPU", trace.gpu))):
        percent = [round(float(values[place]), 1) if math.isfinite(values[place]) else None for place in places]
        if any(value is not None for value in percent):
            look = {"color": style.COLOURS[index], "width": 2, "dash": ("solid", "dash")[index]}
            one: Chart = {"type": "scatter", "mode": "lines", "name": name, "x": seconds, "y": percent, "line": look}
            traces.append(one | {"hovertemplate": f"{name}: %{{y}} % at %{{x}} s<extra></extra>"})
    layout = {
        "xaxis": {"title": {"text": "time, s"}},
        "yaxis": {"title": {"text": "utilisation, %"}, "range": [0, 105]},
        "showlegend": True,
    }
    return {"traces": traces, "layout": layout}
