"""images/s over two axes (threads × prefetch) as heat maps; the published grid of the study beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from harness.analysis.points import PointResult, point_results, sort_key
from harness.analysis.scaling import label, point_label, series_axes
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.plots import heat, published, style

NAME = "two-axes"


@dataclass(frozen=True)
class Grids:
    """``maps`` share the axes ``rows`` and ``columns``; ``study`` is the published one, on a scale of its own."""

    rows: str
    columns: str
    maps: tuple[heat.Map, ...]
    study: heat.Map | None = None


def data(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Grids | str:
    """A map for each combination of the other axes, or what is missing."""
    results = [r for r in point_results(table) if r.variant == 0 and r.runs]
    axes = heat.pair_of_axes(results, campaign)
    if axes is None:
        return "no two numeric axes were varied independently"
    others = [name for name in series_axes(results, campaign.varied, None) if name not in axes]
    groups: dict[tuple[Any, ...], list[PointResult]] = {}
    for result in results:
        groups.setdefault(tuple(result.axes.get(name) for name in others), []).append(result)
    ordered = sorted(groups.items(), key=lambda item: sort_key(item[0]))
    study = _published(layout, campaign, axes)
    alone = "measured here" if study else point_label(results[0], ("workload", "framework"))
    titles = [label(dict(zip(others, key, strict=True))) if others else alone for key, _ in ordered]
    maps = [_map(members, axes, title) for title, (_, members) in zip(titles, ordered, strict=True)]
    return Grids(*axes, tuple(maps), study)


def _map(members: list[PointResult], axes: tuple[str, str], title: str) -> heat.Map:
    places = {(m.axes.get(axes[0]), m.axes.get(axes[1])): m for m in members}
    doubtful = frozenset(place for place, member in places.items() if not member.trusted)
    bounds = {place: (m.rate.low, m.rate.high) for place, m in places.items() if m.rate.known}
    once = frozenset(place for place, member in places.items() if member.rate.rests_on == "within")
    made = heat.make(title, {place: member.rate.value for place, member in places.items()}, doubtful, bounds)
    return replace(made, once=once)


def _published(layout: CampaignLayout, campaign: Campaign, axes: tuple[str, str]) -> heat.Map | None:
    study = published.study(layout, campaign)
    if study is None or axes != ("parallel_threads", "prefetch") or "prefetch_buffer_size" not in study.table:
        return None
    columns = ("parallel_threads", "prefetch_buffer_size", "images_per_second")
    rows = study.table[list(columns)].itertuples(index=False)
    return heat.make(f"published: {study.name}", {(int(a), int(b)): float(rate) for a, b, rate in rows})


def draw(grids: Grids, campaign: Campaign) -> Figure:
    shown = style.every(list(grids.maps), heat.MOST_MAPS)
    panels = [*shown, *([grids.study] if grids.study else [])]
    figure, axes = style.panels(len(panels), width=max(map(heat.width, panels)), height=3.4)
    scale = heat.scale_of(shown)
    for ax, one in zip(axes, panels, strict=True):
        own = heat.scale_of([one]) if one is grids.study else scale
        heat.draw(ax, one, grids.rows, grids.columns, own)
    doubt = "; ?: do not rely on it" if any(one.doubtful for one in shown) else ""
    apart = "; the published grid has a colour scale of its own" if grids.study else ""
    unseen = style.undrawn(any(one.bounds for one in shown))
    note = f"{style.of_all(shown, grids.maps)}images/s (steady); empty: not measured{doubt}{unseen}{apart}"
    style.note(figure, campaign, note)
    return figure


def figure(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(layout, table, campaign)
    return found if isinstance(found, str) else draw(found, campaign)
