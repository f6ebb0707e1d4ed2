"""Charts along one axis: rate, speed-up with the ideal, time, ceilings, and scaling over ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from harness.analysis.scaling import COMPUTING
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.html.charts.base import Chart, line, number_axis, panelled, reference
from harness.report.plots import (
    axis_lines,
    ceilings,
    published,
    rate_against_axis,
    scaling_ranks,
    speedup_against_axis,
    style,
    time_against_axis,
)
from harness.report.plots.along_axis import Curves, Panel, ends, logarithmic, shifted, top


def rate(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Chart] | str:
    found = rate_against_axis.data(table, campaign)
    return found if isinstance(found, str) else _curve_charts("Images per second", "images/s (steady)", found)


def time(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Chart] | str:
    found = time_against_axis.data(table, campaign)
    return found if isinstance(found, str) else _curve_charts("Training time of the timed steps", "time, s", found)


def speedup(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Chart] | str:
    """With the ideal line along what computes, and the study that the campaign repeats beside it."""
    found = speedup_against_axis.data(table, campaign)
    if isinstance(found, str):
        return found
    study = speedup_against_axis.study_line(published.study(layout, campaign), found.axis)
    beside = [reference(study.label, study.x, study.y, published=True)] if study else []
    ideal = found.axis in COMPUTING
    return _curve_charts("Speed-up", "speed-up against the first point", found, ideal, beside)


def published_lines(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Chart] | str:
    """The published grid as lines, each with a scale of its own: those measured here are in the chart of rates."""
    found = axis_lines.data(layout, table, campaign)
    if isinstance(found, str):
        return found
    if found.study is None:
        return "no published study has these two axes"
    study = Curves(found.curves.axis, (found.study,), found.curves.labels)
    return _curve_charts("Images per second", "images/s", study)


def _curve_charts(
    title: str, unit: str, curves: Curves, ideal: bool = False, beside: Sequence[Chart] = ()
) -> list[Chart]:
    panels = [(panel.title, _curve_chart(unit, curves, panel, ideal, beside)) for panel in curves.panels]
    return panelled(title, panels)


def _curve_chart(unit: str, curves: Curves, panel: Panel, ideal: bool, beside: Sequence[Chart]) -> Chart:
    many = len(curves.labels) > style.MOST_NAMED
    traces = [
        line(curves.labels.index(one.label), one.label, one.x, one.y, one.low, one.high, one.doubtful, many)
        | ({} if many else {"x": shifted(number, panel)})
        for number, one in enumerate(panel.lines)
    ]
    xs = sorted({x for one in panel.lines for x in one.x})
    highest = top(panel)
    lines = speedup_against_axis.ideals(one.x for one in panel.lines) if ideal else []
    traces = _ideals(lines) + traces
    highest = max([highest, *(1.05 * y[-1] for _, y in lines)])
    traces += beside
    at = [*xs, *(x for trace in beside for x in trace["x"])]
    layout: Chart = {"xaxis": number_axis(style.named(curves.axis), at)}
    highest = max([highest, *_ends(beside)])
    layout["yaxis"] = {"title": {"text": unit}, "range": [0, highest]}
    if not ideal and logarithmic(panel):
        layout["yaxis"] = {"title": {"text": unit}, "type": "log", "range": [math.log10(end) for end in ends(panel)]}
        layout["yaxis"] |= {"dtick": 1}
    if ideal and layout["xaxis"].get("type") == "log":
        layout["yaxis"] = _doublings(unit, min(y for trace in traces for y in trace["y"]), highest)
    layout["showlegend"] = not many and (len(traces) > 1 or any(one.label for one in panel.lines))
    return {"note": _note(panel, many, ideal, curves.remark), "traces": traces, "layout": layout}


def _ideals(lines: Sequence[tuple[Sequence[float], Sequence[float]]]) -> list[Chart]:
    """One entry in the legend for all of them."""
    return [reference("ideal", x, y) | {"showlegend": not number} for number, (x, y) in enumerate(lines)]


def _doublings(name: str, lowest: float, highest: float) -> Chart:
    """A logarithmic y axis labelled at the powers of two: over another such axis the ideal is a straight line."""
    powers = [2.0**n for n in range(math.floor(math.log2(lowest)), math.ceil(math.log2(highest)) + 1)]
    ticks = {"tickmode": "array", "tickvals": powers, "ticktext": [f"{power:g}" for power in powers]}
    ends = [math.log10(0.8 * lowest), math.log10(1.15 * highest)]
    return {"title": {"text": name}, "type": "log", "range": ends} | ticks


def _ends(traces: Sequence[Chart]) -> list[float]:
    return [1.05 * max(trace["y"]) for trace in traces]


def _note(panel: Panel, many: bool, ideal: bool, remark: str) -> str:
    known = [v for one in panel.lines for v in one.high if math.isfinite(v)]
    once = (one for line in panel.lines for one in line.rests_on_one_run)
    parts = [f"bars: {style.interval_words(once)}"] if known and not many else []
    if parts and max(known) > top(panel):
        parts.append("some longer than shown")
    if any(doubt for one in panel.lines for doubt in one.doubtful):
        parts.append("hollow: do not rely on it")
    if not ideal and logarithmic(panel):
        parts.append("logarithmic")
    return "; ".join([*parts, remark] if remark else parts)


def scaling(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Chart] | str:
    """Speed-up and efficiency over ranks, ideal lines, published numbers."""
    found = scaling_ranks.data(layout, table, campaign)
    if isinstance(found, str):
        return found
    ends = sorted({n for one in found for n in one.ranks})
    over = [_over_ranks(found, efficiency=False), _over_ranks(found, efficiency=True)]
    over[0] = _ideals(speedup_against_axis.ideals(one.ranks for one in found)) + over[0]
    over[1].insert(0, reference("ideal", ends, [1.0] * len(ends)))
    note = scaling_ranks.note(found)
    charts = []
    for name, traces in zip(("Speed-up over ranks", "Efficiency over ranks"), over, strict=True):
        highest = max(max(trace["y"]) for trace in traces)
        yaxis = {"title": {"text": name.split()[0].lower()}, "range": [0, 1.15 * highest]}
        xaxis = number_axis("ranks", ends)
        if xaxis.get("type") == "log" and not name.startswith("Efficiency"):
            yaxis = _doublings("speed-up", min(min(trace["y"]) for trace in traces), highest)
        layout_ = {"xaxis": xaxis, "yaxis": yaxis, "showlegend": True}
        charts.append({"title": name, "note": note, "wide": False, "traces": traces, "layout": layout_})
    return charts


def _over_ranks(found: Sequence[scaling_ranks.Scaling], efficiency: bool) -> list[Chart]:
    traces = []
    for index, one in enumerate(found):
        factor = [one.ranks[0] / n if efficiency else 1.0 for n in one.ranks]
        y, low, high = (
            [value * f for value, f in zip(values, factor, strict=True)] for values in (one.speedup, one.low, one.high)
        )
        if one.published:
            traces.append(reference(one.label, one.ranks, y, published=True))
        else:
            traces.append(line(index, one.label, one.ranks, y, low, high, one.doubtful))
    return traces


def under_ceilings(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Chart] | str:
    """The measured rate under what computing alone would give, a panel per series."""
    found = ceilings.data(table, campaign)
    if isinstance(found, str):
        return found
    axis, panels = found
    charts = []
    for panel in panels:
        traces = [reference("ceiling: computing and exchange alone", panel.x, panel.compute)]
        traces.append(line(0, "measured", panel.x, panel.rate, doubtful=panel.doubtful))
        waits = [place for place, waiting in enumerate(panel.waiting) if waiting]
        if waits:
            x, y = [panel.x[place] for place in waits], [panel.rate[place] for place in waits]
            doubtful = [panel.doubtful[place] for place in waits]
            limited = line(1, "limited by the input pipeline", x, y, doubtful=doubtful)
            traces.append(limited | {"mode": "markers"})
        yaxis = {"title": {"text": "images/s (steady)"}, "rangemode": "tozero"}
        layout_ = {"xaxis": number_axis(style.named(axis), panel.x), "yaxis": yaxis, "showlegend": True}
        note = "from the waits of the same runs" + ("; hollow: do not rely on it" if any(panel.doubtful) else "")
        note += style.undrawn(panel.intervals)
        charts.append((panel.title, {"note": note, "traces": traces, "layout": layout_}))
    return panelled("Rate and ceiling", charts)
