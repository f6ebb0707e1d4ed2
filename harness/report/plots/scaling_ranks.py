"""Speed-up and efficiency over ranks, with the ideal line; pipelines against each other, published numbers beside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.analysis import stats
from harness.analysis.points import PointResult, point_results, sort_key
from harness.analysis.scaling import label, series_axes
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.plots import published, style
from harness.report.plots.speedup_against_axis import ideals

NAME = "scaling"
#: A panel shows values up to this; longer intervals run out of it.
HIGHEST_EFFICIENCY = 1.5
MOST_SERIES = 12


@dataclass(frozen=True)
class Scaling:
    """One series: ``ranks`` and the ``speedup`` against its first point, with the ends of the interval (NaN: none).

    ``doubtful`` marks points not to rely on, ``once`` those whose interval rests on a single run."""

    label: str
    ranks: tuple[int, ...]
    speedup: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    published: bool = False
    doubtful: tuple[bool, ...] = ()
    once: tuple[bool, ...] = ()


def data(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Scaling] | str:
    """A series for each combination of the axes that are not numbers of ranks, or what is missing."""
    results = [r for r in point_results(table) if r.variant == 0 and r.runs]
    if len({_ranks(r) for r in results}) < 2:
        return "the number of ranks was not varied"
    names = [
        n for n in series_axes(results, campaign.varied, None) if n not in ("nodes", "ranks_per_node", "cpu_cores")
    ]
    groups: dict[tuple[Any, ...], list[PointResult]] = {}
    for result in results:
        groups.setdefault(tuple(result.axes.get(name) for name in names), []).append(result)
    found = []
    for key, members in sorted(groups.items(), key=lambda item: sort_key(item[0])):
        series = _series(members, label({n: v for n, v in zip(names, key, strict=True) if v is not None}))
        if len(series.ranks) > 1:
            found.append(series)
    if not found:
        return "no series has two numbers of ranks"
    study = _published(layout, campaign)
    return found + ([study] if study else [])


def _ranks(result: PointResult) -> int:
    return int(result.axes["nodes"]) * int(result.axes["ranks_per_node"])


def _series(members: Sequence[PointResult], name: str) -> Scaling:
    """The fastest point to rely on of each number of ranks, else the fastest: how ranks are spread over nodes is not
    what is asked here."""
    best: dict[int, PointResult] = {}
    for member in sorted(members, key=lambda m: (m.trusted, m.rate.value)):
        best[_ranks(member)] = member
    ranks = tuple(sorted(best))
    base = best[ranks[0]].rate
    ratios = [stats.ratio(best[n].rate, base) for n in ranks[1:]]
    low = (math.nan, *(r.low if r.known else math.nan for r in ratios))
    high = (math.nan, *(r.high if r.known else math.nan for r in ratios))
    based = best[ranks[0]].trusted
    return Scaling(
        label="measured here" if name == "all" else name,
        ranks=ranks,
        speedup=(1.0, *(r.value for r in ratios)),
        low=low,
        high=high,
        doubtful=tuple(not (based and best[n].trusted) for n in ranks),
        once=(False, *(r.rests_on == "within" for r in ratios)),
    )


def _published(layout: CampaignLayout, campaign: Campaign) -> Scaling | None:
    study = published.study(layout, campaign)
    if study is None or "gpus" not in study.table:
        return None
    gpus = tuple(int(n) for n in study.table["gpus"])
    rates = [float(rate) for rate in study.table["images_per_second"]]
    nothing = tuple(math.nan for _ in gpus)
    return Scaling(f"published: {study.name}", gpus, tuple(r / rates[0] for r in rates), nothing, nothing, True)


def draw(series: list[Scaling], campaign: Campaign) -> Figure:
    """Two panels: speed-up with the ideal line, efficiency with 100 %."""
    everything, series = series, style.every(series, MOST_SERIES)
    figure, (left, right) = style.panels(2, width=4.8, height=3.6)
    ends = sorted({n for one in series for n in one.ranks})
    for x, y in ideals(one.ranks for one in series):
        left.plot(x, y, color=style.GREY, linewidth=1, linestyle=(0, (1, 2)), label="ideal")
    right.axhline(1.0, color=style.GREY, linewidth=1, linestyle=(0, (1, 2)))
    for index, one in enumerate(series):
        _line(left, one, index, [1.0] * len(one.ranks))
        _line(right, one, index, [one.ranks[0] / n for n in one.ranks])
    highest = max(max(one.speedup) for one in series)
    if style.doubling([float(n) for n in ends]):
        left.set_yscale("log", base=2)
        style.plain_powers(left.yaxis)
        left.set_ylim(min(min(one.speedup) for one in series) / 1.3, 1.5 * highest)
    else:
        left.set_ylim(0, 1.15 * highest)
    right.set_ylim(0, HIGHEST_EFFICIENCY if max(_efficiencies(series)) > 1.1 else 1.1)
    for ax, name in ((left, "speed-up"), (right, "efficiency")):
        style.integer_ticks(ax, [float(n) for n in ends])
        ax.set_xlabel("ranks")
        ax.set_ylabel(name)
    style.legend_below(figure, style.handles_of([left]))
    style.note(figure, campaign, style.of_all(series, everything) + note(series))
    return figure


def note(series: Sequence[Scaling]) -> str:
    """What speed-ups are against, and what bars and hollow markers mean."""
    drawn = [one for each in series for one, high in zip(each.once, each.high, strict=False) if math.isfinite(high)]
    doubt = "; hollow: do not rely on it" if any(any(one.doubtful) for one in series) else ""
    return f"each against its own fewest ranks; bars: {style.interval_words(drawn)}{doubt}"


def _efficiencies(series: Sequence[Scaling]) -> list[float]:
    return [s * one.ranks[0] / n for one in series for s, n in zip(one.speedup, one.ranks, strict=True)]


def _line(ax: Axes, one: Scaling, index: int, factor: Sequence[float]) -> None:
    y = [s * f for s, f in zip(one.speedup, factor, strict=True)]
    down = [0.0 if math.isnan(v) else (s - v) * f for s, v, f in zip(one.speedup, one.low, factor, strict=True)]
    up = [0.0 if math.isnan(v) else (v - s) * f for s, v, f in zip(one.speedup, one.high, factor, strict=True)]
    look = style.series_style(index)
    if one.published:
        look |= {"color": "black", "marker": "x", "linestyle": ":"}
    ax.errorbar(one.ranks, y, yerr=(down, up), label=style.wrapped(one.label, 44), **look)
    for n, value, doubt in zip(one.ranks, y, one.doubtful, strict=False):
        if doubt:
            ax.plot([n], [value], look["marker"], color=look["color"], markerfacecolor="white", zorder=4)


def figure(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(layout, table, campaign)
    return found if isinstance(found, str) else draw(found, campaign)
