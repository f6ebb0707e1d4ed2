"""Interactive charts of the report as plotly's JSON, from the same pure data as the printed figures."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from harness.model.campaign import Campaign
from harness.report.plots import rate_against_axis, speedup_against_axis, style, time_against_axis, time_shares
from harness.report.plots.along_axis import MOST_HEADROOM, Curves, Line, Panel

Chart = dict[str, Any]
#: Bars of the chart of step times; more are evenly thinned out.
MOST_BARS = 60

_CURVES: tuple[tuple[str, str, Callable[[pd.DataFrame, Campaign], Curves | str]], ...] = (
    ("Images per second", "images/s (steady)", rate_against_axis.data),
    ("Speed-up", "speed-up against the first point", speedup_against_axis.data),
    ("Training time of the timed steps", "time, s", time_against_axis.data),
)


def all_charts(table: pd.DataFrame, campaign: Campaign) -> tuple[list[Chart], list[tuple[str, str]]]:
    """Charts that the data support, and (name, what is missing) of the others.

    A chart is {title, note, traces, layout, wide}: traces and layout as plotly takes them, texts escaped; a wide
    one also has ``narrow``, the labels of its bars for narrow screens.
    """
    charts: list[Chart] = []
    missing: list[tuple[str, str]] = []
    for title, unit, data in _CURVES:
        curves = data(table, campaign)
        if isinstance(curves, str):
            missing.append((title, curves))
        else:
            charts += [_curve_chart(title, unit, curves, panel) for panel in curves.panels]
    bars = time_shares.data(table, campaign)
    if isinstance(bars, str):
        missing.append(("Where the time goes", bars))
    else:
        charts.append(_share_chart(bars))
    return charts, missing


def safe(text: str) -> str:
    """Text as plotly must get it to show it literally: it reads a subset of HTML in labels."""
    return html.escape(text, quote=False)


def short(text: str, width: int = 40) -> str:
    """At most ``width`` letters: the end of a long name tells it from others as often as its beginning."""
    half = (width - 1) // 2
    return safe(text if len(text) <= width else f"{text[:half]}…{text[-half:]}")


def _curve_chart(title: str, unit: str, curves: Curves, panel: Panel) -> Chart:
    many = len(curves.labels) > style.MOST_NAMED
    traces = [_trace(line, curves.labels.index(line.label), many) for line in panel.lines]
    xs = sorted({x for line in panel.lines for x in line.x})
    axis: dict[str, Any] = {"title": {"text": safe(style.named(curves.axis))}}
    if style.doubling(xs):
        axis |= {"type": "log"}
    if len(xs) <= 12:
        axis |= {"tickmode": "array", "tickvals": xs, "ticktext": [f"{x:g}" for x in xs]}
    layout: Chart = {"xaxis": axis, "yaxis": {"title": {"text": unit}, "range": [0, _top(panel)]}}
    layout["showlegend"] = not many and any(line.label for line in panel.lines)
    where = f"{title}: {panel.title}" if panel.title != "all" else title
    return {"title": where, "note": _note(panel, many), "traces": traces, "layout": layout, "wide": False}


def _trace(line: Line, index: int, many: bool) -> Chart:
    look = style.series_style(index)
    low = [y - v if math.isfinite(v) else 0.0 for y, v in zip(line.y, line.low, strict=True)]
    high = [v - y if math.isfinite(v) else 0.0 for y, v in zip(line.y, line.high, strict=True)]
    texts = [_hover(line, place) for place in range(len(line.x))]
    symbols = [_SYMBOLS[index % len(_SYMBOLS)] + ("-open" if doubt else "") for doubt in line.doubtful]
    colour = look["color"]
    trace: Chart = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": short(line.label) or "measured",
        "x": list(line.x),
        "y": list(line.y),
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": colour, "width": 1 if many else 2, "dash": _DASHES[index // 6 % len(_DASHES)]},
        "marker": {"color": colour, "size": 4 if many else 8, "symbol": symbols},
        "error_y": {"type": "data", "symmetric": False, "array": high, "arrayminus": low, "color": colour},
    }
    trace["error_y"]["visible"] = not many
    return trace


def _hover(line: Line, place: int) -> str:
    interval = ""
    if math.isfinite(line.low[place]):
        interval = f" [{line.low[place]:.4g}, {line.high[place]:.4g}]"
    doubt = "<br>do not rely on it: see the findings" if line.doubtful[place] else ""
    return f"{safe(line.label)}<br>{line.x[place]:g}: {line.y[place]:.4g}{interval}{doubt}".removeprefix("<br>")


_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "triangle-left", "star")
_DASHES = ("solid", "dash", "dot", "dashdot")


def _top(panel: Panel) -> float:
    """The upper end of the y axis: a very wide interval runs out of the chart instead of flattening it."""
    highest = max(y for line in panel.lines for y in line.y)
    widest = max((v for line in panel.lines for v in line.high if math.isfinite(v)), default=highest)
    return min(1.08 * max(widest, highest), MOST_HEADROOM * highest)


def _note(panel: Panel, many: bool) -> str:
    parts = [] if many else ["bars: 95 % interval"]
    widest = max((v for line in panel.lines for v in line.high if math.isfinite(v)), default=0.0)
    if not many and widest > _top(panel):
        parts.append("some longer than shown")
    if any(doubt for line in panel.lines for doubt in line.doubtful):
        parts.append("hollow: do not rely on it")
    return "; ".join(parts)


def _share_chart(bars: Sequence[time_shares.Bar]) -> Chart:
    shown = style.every(list(bars), MOST_BARS)[::-1]
    labels = [short(bar.label, 60) for bar in shown]
    longest = max((sum(bar.milliseconds.values()) for bar in shown), default=0.0)
    traces = []
    for part in time_shares.PARTS:
        values = [bar.milliseconds[part] for bar in shown]
        if max(values, default=0.0) > time_shares.VISIBLE_SHARE * longest:
            colour = {"color": time_shares.COLOURS[part]}
            trace = {"type": "bar", "orientation": "h", "name": part, "marker": colour, "x": values}
            trace |= {"y": list(range(len(shown))), "text": labels, "textposition": "none"}
            trace["hovertemplate"] = f"%{{text}}<br>{part}: %{{x:.4g}} ms<extra></extra>"
            traces.append(trace)
    ticks = {"tickmode": "array", "tickvals": list(range(len(shown))), "ticktext": labels, "automargin": True}
    layout = {
        "barmode": "stack",
        "xaxis": {"title": {"text": "mean step time in the steady window, ms"}},
        "yaxis": ticks | {"range": [-0.6, len(shown) - 0.4]},
        "height": 160 + 24 * len(shown),
        "showlegend": True,
    }
    note = style.of_all(shown, bars) + "mean over repeats; wait: for data, other: what no part explains"
    chart: Chart = {"title": "Where a step's time goes", "note": note, "traces": traces, "layout": layout, "wide": True}
    return chart | {"narrow": [_stacked(bar.label) for bar in shown]}


def _stacked(label: str) -> str:
    """A label for narrow screens: its parts below each other."""
    return "<br>".join(short(part, 18) for part in label.split(", ")[:4])
