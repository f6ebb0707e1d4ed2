"""Charts of names instead of numbers: where a step's time goes, encodings, storages with staging, loss against rate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.html.charts.base import REFERENCE, SYMBOLS, Chart, panelled, safe, short
from harness.report.numbers import number
from harness.report.plots import encoding_bars, loss_rate, storage_staging, style, time_shares
from harness.report.plots.bars import interval_words

#: Bars of a chart; more are evenly thinned out.
MOST_BARS = 60


def shares(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Chart] | str:
    found = time_shares.data(table, campaign)
    if isinstance(found, str):
        return found
    shown = style.every(list(found), MOST_BARS)[::-1]
    labels = [short(bar.label, 60) for bar in shown]
    longest = max((sum(bar.milliseconds.values()) for bar in shown), default=0.0)
    traces = []
    for part in time_shares.PARTS:
        values = [bar.milliseconds[part] for bar in shown]
        if max(values, default=0.0) > time_shares.VISIBLE_SHARE * longest:
            look = _filled(time_shares.COLOURS[part], [bar.doubtful for bar in shown])
            trace = {"type": "bar", "orientation": "h", "name": part, "marker": look, "x": values}
            trace |= {"y": list(range(len(shown))), "text": labels, "textposition": "none"}
            trace["hovertemplate"] = f"%{{text}}<br>{part}: %{{x:.4g}} ms<extra></extra>"
            traces.append(trace)
    layout_ = {
        "barmode": "stack",
        "xaxis": {"title": {"text": "mean step time, ms"}},
        "yaxis": _names(labels),
        "height": 160 + 24 * len(shown),
        "showlegend": True,
    }
    doubt = "; hatched: do not rely on it" if any(bar.doubtful for bar in shown) else ""
    words = f"in the steady window, mean over repeats; wait: for data, other: what no part explains{doubt}"
    words += style.undrawn(any(bar.interval for bar in shown))
    note = style.of_all(shown, found) + words
    chart: Chart = {
        "title": "Where a step's time goes",
        "note": note,
        "traces": traces,
        "layout": layout_,
        "wide": True,
    }
    return [chart | {"narrow": [_stacked(bar.label) for bar in shown]}]


def _filled(colour: str, doubtful: Sequence[bool]) -> Chart:
    """Bars in a colour; those not to rely on are hatched: paler ones would fade into one of two backgrounds."""
    look: Chart = {"color": colour, "line": {"color": colour, "width": 1}}
    if any(doubtful):
        look["pattern"] = {"shape": ["/" if doubt else "" for doubt in doubtful], "fillmode": "replace"}
    return look


def _names(labels: list[str]) -> Chart:
    """A y axis with a label at each whole number."""
    ticks = {"tickmode": "array", "tickvals": list(range(len(labels))), "ticktext": labels, "automargin": True}
    return ticks | {"range": [-0.6, len(labels) - 0.4], "showgrid": False}


def _stacked(label: str) -> str:
    """A label for narrow screens: its parts below each other."""
    return "<br>".join(short(part, 18) for part in label.split(", ")[:4])


def encodings(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Chart] | str:
    """images/s by the stored form, a group of bars for each combination of the other axes."""
    found = encoding_bars.data(table, campaign)
    if isinstance(found, str):
        return found
    places = style.every(list(range(len(found.groups))), MOST_BARS // len(found.names))[::-1]
    groups = [found.groups[place] for place in places]
    traces = []
    for index, name in enumerate(found.names):
        estimates = [found.values[place].get(name) for place in places]
        known = [(row, e) for row, e in enumerate(estimates) if e is not None]
        doubtful = [(groups[row], name) in found.doubtful for row, _ in known]
        trace: Chart = {"type": "bar", "orientation": "h", "name": short(name), "x": [e.value for _, e in known]}
        trace |= {"y": [row for row, _ in known], "offsetgroup": index}
        trace["marker"] = _filled(style.COLOURS[index % len(style.COLOURS)], doubtful)
        up = [e.high - e.value if e.known else 0.0 for _, e in known]
        down = [e.value - e.low if e.known else 0.0 for _, e in known]
        trace["error_x"] = {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "color": REFERENCE}
        trace["hovertemplate"] = f"{short(name)}: %{{x:.4g}} images/s<extra></extra>"
        traces.append(trace)
    highest = max(e.value for group in found.values for e in group.values())
    widest = max((e.high for group in found.values for e in group.values() if e.known), default=highest)
    layout_ = {
        "barmode": "group",
        "xaxis": {"title": {"text": "images/s (steady)"}, "range": [0, min(1.05 * max(widest, highest), 2 * highest)]},
        "yaxis": _names([short(group, 60) for group in groups]),
        "height": 160 + len(groups) * (14 + 18 * len(found.names)),
        "showlegend": len(found.names) <= style.MOST_NAMED,
    }
    doubt = "; hatched: do not rely on it" if found.doubtful else ""
    note = f"lines: {interval_words(found)}{doubt}"
    chart: Chart = {"title": "Stored form of the samples", "note": note, "wide": True}
    return [chart | {"traces": traces, "layout": layout_, "narrow": [_stacked(group) for group in groups]}]


def storages(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Chart] | str:
    """Time for a number of images from each storage, the copy counted; where staging has paid."""
    found = storage_staging.data(table, campaign)
    if isinstance(found, str):
        return found
    names = list(dict.fromkeys(s.name for panel in found for s in panel.storages))
    return panelled("Storage and staging", [(panel.title, _storage_chart(panel, names)) for panel in found])


def _storage_chart(panel: storage_staging.Panel, names: list[str]) -> Chart:
    most = storage_staging.most_images(panel)
    traces = []
    for storage in panel.storages:
        staged = " (staged first)" if storage.stage_s else ""
        colour = style.COLOURS[names.index(storage.name) % len(style.COLOURS)]
        look = {"color": colour, "dash": "solid" if storage.stage_s else "dash"}
        ends = [storage.stage_s, storage.stage_s + most / storage.rate]
        trace: Chart = {"type": "scatter", "mode": "lines", "name": short(storage.name) + staged, "line": look}
        traces.append(trace | {"x": [0, most], "y": ends, "hovertemplate": _storage_hover(storage)})
    note = storage_staging.verdict(panel)
    shapes = []
    if math.isfinite(panel.break_even):
        mark = {"color": REFERENCE, "dash": "dot", "width": 1}
        shapes = [{"type": "line", "x0": panel.break_even, "x1": panel.break_even, "y0": 0, "y1": 1} | {"line": mark}]
        shapes[0] |= {"yref": "paper"}
    layout = {
        "xaxis": {"title": {"text": "images"}, "nticks": 5},
        "yaxis": {"title": {"text": "time, s"}, "rangemode": "tozero"},
        "shapes": shapes,
        "showlegend": len(names) <= style.MOST_NAMED,
    }
    return {"note": note, "traces": traces, "layout": layout}


def _storage_hover(storage: storage_staging.Storage) -> str:
    copied = f", {number(storage.stage_s, 3).rstrip('.')} s to stage" if storage.stage_s else ""
    named = f"{short(storage.name)}: {number(storage.rate)} images/s{copied}"
    return named + "<br>%{x:.4g} images: %{y:.4g} s<extra></extra>"


def losses(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Chart] | str:
    found = loss_rate.data(table)
    if isinstance(found, str):
        return found
    traces = []
    for index, group in enumerate(dict.fromkeys(outcome.group for outcome in found)):
        members = [outcome for outcome in found if outcome.group == group]
        look = {"color": style.COLOURS[index % len(style.COLOURS)], "size": 9, "symbol": SYMBOLS[index % len(SYMBOLS)]}
        trace: Chart = {"type": "scatter", "mode": "markers", "name": safe(group), "marker": look}
        trace |= {"x": [m.rate for m in members], "y": [m.loss for m in members]}
        traces.append(
            trace | {"hovertemplate": f"{safe(group)}<br>%{{x:.4g}} images/s, loss %{{y:.4g}}<extra></extra>"}
        )
    layout_ = {
        "xaxis": {"title": {"text": "images consumed per second (steady)"}},
        "yaxis": {"title": {"text": loss_rate.what(found)}},
        "showlegend": len(traces) <= style.MOST_NAMED,
    }
    note = "a marker per run; images consumed count repeated ones"
    return [{"title": "Loss against rate", "note": note, "wide": False, "traces": traces, "layout": layout_}]
