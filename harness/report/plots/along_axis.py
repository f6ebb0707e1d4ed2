"""Data and drawing shared by the figures that follow one axis (cores, workers, threads, nodes)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.analysis.points import point_results
from harness.analysis.scaling import Series, Step, label, primary_axis, series_along
from harness.analysis.stats import Estimate
from harness.model.campaign import Campaign
from harness.report.plots import style

Value = Callable[[Step], Estimate]


@dataclass(frozen=True)
class Line:
    """One line: x, y and its 95 % interval (NaN where unknown); ``doubtful`` marks points not to rely on, ``once``
    those whose interval rests on a single run."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    doubtful: tuple[bool, ...]
    once: tuple[bool, ...] = ()

    @property
    def rests_on_one_run(self) -> list[bool]:
        """Of each interval that is drawn whether it does."""
        return [one for low, high, one in zip(self.low, self.high, self.once, strict=False) if low < high]


@dataclass(frozen=True)
class Panel:
    """``steps_timed`` are the numbers of timed steps among its points."""

    title: str
    lines: tuple[Line, ...]
    steps_timed: tuple[int, ...]


@dataclass(frozen=True)
class Curves:
    """What a figure along an axis shows; ``labels`` in one order give each series the same colour in every panel;
    ``remark`` is added to the line above the panels."""

    axis: str
    panels: tuple[Panel, ...]
    labels: tuple[str, ...]
    remark: str = ""


def curves(table: pd.DataFrame, campaign: Campaign, value: Value, against_base: bool = False) -> Curves | str:
    """Lines of ``value`` along the primary axis, a panel per workload; a text says what is missing.

    ``against_base``: the values are against the first point of their series, and no more to rely on than that.
    """
    results = point_results(table)
    axis = primary_axis(results, campaign.varied)
    if axis is None:
        return "no numeric axis was varied"
    series = series_along(results, campaign.varied, axis)
    panels: dict[str, list[tuple[Series, Line]]] = {}
    for one in series:
        line = _line(one, value, against_base and not one.steps[0].result.trusted)
        if line.x:
            panels.setdefault(_panel_title(one, series), []).append((one, line))
    if not panels:
        return "no point has such a value yet"
    labels = dict.fromkeys(line.label for members in panels.values() for _, line in members)
    beside = dict.fromkeys(style.named(name) for one in series for name in one.beside)
    remark = f"along the axis, {' and '.join(beside)} changed as well" if beside else ""
    return Curves(axis, tuple(_panel(title, members) for title, members in panels.items()), tuple(labels), remark)


def _panel(title: str, members: Sequence[tuple[Series, Line]]) -> Panel:
    steps = {int(step.result.axes["steps_timed"]) for one, _ in members for step in one.steps}
    return Panel(title, tuple(line for _, line in members), tuple(sorted(steps)))


def _panel_keys(series: Series) -> Mapping[str, Any]:
    """What makes a panel: the workload where it varies, otherwise the first of several keys."""
    if "workload" in series.key:
        return {"workload": series.key["workload"]}
    first = next(iter(series.key), None)
    return {first: series.key[first]} if first is not None and len(series.key) > 1 else {}


def _panel_title(series: Series, of: Sequence[Series]) -> str:
    keys = _panel_keys(series)
    if keys:
        return label(keys)
    base = of[0].steps[0].result.axes
    names = [name for name in ("workload", "framework") if name not in of[0].key]
    return label({name: base[name] for name in names if base.get(name) not in (None, "none")})


def _line(series: Series, value: Value, doubtful: bool) -> Line:
    named = {key: v for key, v in series.key.items() if key not in _panel_keys(series)}
    points = [(step, value(step)) for step in series.steps]
    points = [(step, estimate) for step, estimate in points if math.isfinite(estimate.value)]
    return Line(
        label=label(named) if named else "",
        x=tuple(step.x for step, _ in points),
        y=tuple(e.value for _, e in points),
        low=tuple(e.low if e.known else math.nan for _, e in points),
        high=tuple(e.high if e.known else math.nan for _, e in points),
        doubtful=tuple(doubtful or not step.result.trusted for step, _ in points),
        once=tuple(e.rests_on == "within" for _, e in points),
    )


def draw_panel(ax: Axes, data: Curves, panel: Panel) -> None:
    """Lines with interval bars; doubtful points are hollow. Very many lines are drawn thin, colours in order."""
    many = len(data.labels) > style.MOST_NAMED
    for number, line in enumerate(panel.lines):
        index = data.labels.index(line.label)
        look = style.crowd_style(index, len(data.labels)) if many else style.series_style(index)
        x = line.x if many else shifted(number, panel)
        if many:
            ax.plot(x, line.y, **look)
        else:
            ax.errorbar(x, line.y, yerr=_bars(line), label=style.wrapped(line.label), zorder=3, **look)
        for a, b, doubt in zip(x, line.y, line.doubtful, strict=True):
            if doubt:
                ax.plot([a], [b], look["marker"], color=look["color"], markerfacecolor="white", zorder=4)
    style.integer_ticks(ax, [x for line in panel.lines for x in line.x])
    ax.set_title(style.wrapped(panel.title, 44))
    ax.set_xlabel(style.named(data.axis))


def _bars(line: Line) -> tuple[list[float], list[float]]:
    down = [0.0 if math.isnan(low) else max(y - low, 0.0) for y, low in zip(line.y, line.low, strict=True)]
    up = [0.0 if math.isnan(high) else max(high - y, 0.0) for y, high in zip(line.y, line.high, strict=True)]
    return down, up


def shifted(number: int, panel: Panel) -> list[float]:
    """x of the panel's line ``number``, moved a little by its place among the lines: bars must not hide each other."""
    xs, place = panel.lines[number].x, number - (len(panel.lines) - 1) / 2
    measured = sorted({x for line in panel.lines for x in line.x})
    if len(measured) < 2 or len(panel.lines) < 2:
        return list(xs)
    share = 0.12 * place / len(panel.lines)
    if style.doubling(measured):
        nearest = min(math.log2(b / a) for a, b in pairwise(measured))
        return [x * 2 ** (share * nearest) for x in xs]
    return [x + share * min(b - a for a, b in pairwise(measured)) for x in xs]


def draw_all_panels(data: Curves, campaign: Campaign, ylabel: str) -> Figure:
    """The whole figure from zero: a panel each, one legend, a note on how to read it."""
    shown = style.every(list(data.panels), MOST_PANELS)
    figure, axes = style.panels(len(shown))
    for ax, panel in zip(axes, shown, strict=True):
        draw_panel(ax, data, panel)
        if logarithmic(panel):
            ax.set_yscale("log")
            style.plain_log(ax.yaxis)
            ax.set_ylim(*ends(panel))
        else:
            ax.set_ylim(0, top(panel))
    far = ["logarithmic where values are far apart"] if any(map(logarithmic, shown)) else []
    told = "; ".join([*far, data.remark] if data.remark else far)
    finish(figure, axes, replace(data, remark=told), campaign, ylabel)
    return figure


def top(panel: Panel) -> float:
    """The upper end of the y axis: a very wide interval must not flatten all others."""
    highest = max(y for line in panel.lines for y in line.y)
    widest = max((v for line in panel.lines for v in line.high if math.isfinite(v)), default=highest)
    return min(1.06 * max(widest, highest), MOST_HEADROOM * highest)


def logarithmic(panel: Panel) -> bool:
    """Whether lines are so far apart that the lower ones would lie on zero."""
    values = [y for line in panel.lines for y in line.y]
    return min(values) > 0 and max(values) > FAR_APART * min(values)


def ends(panel: Panel) -> tuple[float, float]:
    """Both ends of a logarithmic y axis."""
    return min(y for line in panel.lines for y in line.y) / 2, 1.5 * top(panel)


def longer_than_shown(panels: Sequence[Panel]) -> bool:
    """Whether an interval runs out of its panel."""
    return any(v > top(panel) for panel in panels for line in panel.lines for v in line.high if math.isfinite(v))


#: The y axis ends at this many times the highest value; longer interval bars run out of the panel.
MOST_HEADROOM = 2.5
#: Panels whose values differ by more than this factor have a logarithmic scale.
FAR_APART = 50.0
#: More panels are evenly thinned out.
MOST_PANELS = 12


def finish(figure: Figure, axes: Sequence[Axes], data: Curves, campaign: Campaign, ylabel: str) -> None:
    """The y label on the left, the legend below the panels, and what bars and hollow markers mean."""
    for ax in axes[:: style.ACROSS]:
        ax.set_ylabel(ylabel)
    places = {style.wrapped(label): place for place, label in enumerate(data.labels)}
    handles = sorted(style.handles_of(axes).items(), key=lambda item: places.get(item[0], -1))
    style.legend_below(figure, dict(handles))
    style.note(figure, campaign, style.of_all(axes, data.panels, "panels") + _note(data))


def _note(data: Curves) -> str:
    lines = [line for panel in data.panels for line in panel.lines]
    if len(data.labels) > style.MOST_NAMED:
        parts = [f"{len(data.labels)} series, named in the table"]
    elif any(math.isfinite(v) for line in lines for v in line.low):
        longer = ", some longer than shown" if longer_than_shown(data.panels) else ""
        parts = [f"bars: {style.interval_words(one for line in lines for one in line.rests_on_one_run)}{longer}"]
    else:
        parts = ["no intervals: too few runs and steps"]
    if any(d for line in lines for d in line.doubtful):
        parts.append("hollow: do not rely on it, see `harness check`")
    if data.remark:
        parts.append(data.remark)
    return "; ".join(parts)
