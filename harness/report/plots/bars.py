"""Bars over an axis whose values are names (encoding, storage, pipeline), grouped by the other axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from harness.analysis.points import PointResult, point_results, sort_key
from harness.analysis.scaling import label, series_axes
from harness.analysis.stats import Estimate
from harness.model.campaign import Campaign
from harness.report.grid import text
from harness.report.plots import style

MOST_GROUPS, MOST_NAMES = 24, 12
#: Height of a bar.
BAR_INCHES = 0.22
#: The axis ends at this many times the highest bar; longer intervals run out of it.
MOST_HEADROOM = 2.0


@dataclass(frozen=True)
class Bars:
    """``values[group][name]`` is the estimate of a bar; absent where it was not measured."""

    axis: str
    names: tuple[str, ...]
    groups: tuple[str, ...]
    values: tuple[dict[str, Estimate], ...]
    doubtful: frozenset[tuple[str, str]]


def data(table: pd.DataFrame, campaign: Campaign, axis: str) -> Bars | str:
    """images/s of each value of ``axis``, a group for each combination of the others, or what is missing."""
    results = [r for r in point_results(table) if r.variant == 0 and r.runs]
    names = tuple(dict.fromkeys(text(r.axes.get(axis)) for r in results))
    if len(names) < 2:
        return f"fewer than two values of {axis} were measured"
    others = [name for name in series_axes(results, [n for n in campaign.varied if n != axis], None) if name != axis]
    groups: dict[tuple[Any, ...], dict[str, PointResult]] = {}
    for result in sorted(results, key=lambda r: sort_key(r.axes.get(name) for name in others)):
        bars = groups.setdefault(tuple(result.axes.get(name) for name in others), {})
        name = text(result.axes.get(axis))
        # pipelines may follow from the value: of several points of one bar the fastest to rely on stands for it
        if name not in bars or _preferred(result) > _preferred(bars[name]):
            bars[name] = result
    labels = tuple(label(dict(zip(others, key, strict=True))) for key in groups)
    shown = list(zip(labels, groups.values(), strict=True))
    doubtful = frozenset((group, name) for group, bars in shown for name, r in bars.items() if not r.trusted)
    return Bars(axis, names, labels, tuple({n: r.rate for n, r in bars.items()} for _, bars in shown), doubtful)


def _preferred(result: PointResult) -> tuple[bool, float]:
    return result.trusted, result.rate.value


def draw(bars: Bars, campaign: Campaign) -> Figure:
    """Horizontal groups; intervals as thin lines, bars not to rely on pale."""
    places = style.every(list(range(len(bars.groups))), MOST_GROUPS)
    names = style.every(list(bars.names), MOST_NAMES)
    labels = [style.wrapped(bars.groups[place], 40) for place in places]
    letters = 0.18 * max(label.count("\n") + 1 for label in labels)
    size = max(letters, BAR_INCHES * len(names) + 0.2)
    figure = Figure(figsize=(8, 1.4 + len(places) * size), layout="constrained")
    ax = figure.subplots()
    height = 0.8 / len(names)
    for index, name in enumerate(names):
        for row, place in enumerate(places):
            estimate = bars.values[place].get(name)
            if estimate is not None:
                y = -row - (index - (len(names) - 1) / 2) * height
                pale = style.PALE if (bars.groups[place], name) in bars.doubtful else 1.0
                ax.barh(y, estimate.value, height * 0.92, alpha=pale, **_look(index))
                if estimate.known:
                    ax.plot([estimate.low, estimate.high], [y, y], color="black", linewidth=1)
    ax.set_yticks([-row for row in range(len(places))], labels)
    _finish(figure, bars)
    style.legend_below(figure, {style.wrapped(name): _sample(index) for index, name in enumerate(names)})
    shown = style.of_all(places, bars.groups, "groups") + style.of_all(names, bars.names, bars.axis + "s")
    style.note(figure, campaign, shown + _note(bars))
    return figure


def _look(index: int) -> dict[str, Any]:
    colour = style.COLOURS[index % len(style.COLOURS)]
    return {"color": colour, "edgecolor": "white", "hatch": _HATCHES[index // len(style.COLOURS) % len(_HATCHES)]}


def _sample(index: int) -> Patch:
    """The legend's entry: in full colour, though all bars of the name may be pale."""
    look = _look(index)
    return Patch(facecolor=look["color"], edgecolor=look["edgecolor"], hatch=look["hatch"])


_HATCHES = ("", "//", "..")


def _ends(bars: Bars) -> tuple[float, float]:
    """The highest bar, and the end of the longest interval."""
    highest = max(e.value for group in bars.values for e in group.values())
    return highest, max((e.high for group in bars.values for e in group.values() if e.known), default=highest)


def _finish(figure: Figure, bars: Bars) -> None:
    ax = figure.axes[0]
    highest, widest = _ends(bars)
    ax.set_xlim(0, min(MOST_HEADROOM * highest, 1.05 * max(highest, widest)))
    ax.set_xlabel("images/s (steady)")
    ax.grid(axis="y", visible=False)


def _note(bars: Bars) -> str:
    highest, widest = _ends(bars)
    longer = ", some longer than shown" if widest > MOST_HEADROOM * highest else ""
    return f"lines: {interval_words(bars)}{longer}" + ("; pale: do not rely on it" if bars.doubtful else "")


def interval_words(bars: Bars) -> str:
    """What the lines on the bars are."""
    return style.interval_words(e.rests_on == "within" for group in bars.values for e in group.values() if e.known)
