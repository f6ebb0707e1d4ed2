"""Interactive charts of the report as plotly's JSON, from the same pure data as the printed figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.html.charts import bars, curves, grids, over_time
from harness.report.html.charts.base import Chart

Maker = Callable[[CampaignLayout, pd.DataFrame, Campaign], "list[Chart] | str"]

#: What most readers ask first comes first. A name is that of the printed figure.
MAKERS: dict[str, Maker] = {
    "images-per-second": curves.rate,
    "speed-up": curves.speedup,
    "two-axes": grids.heat_maps,
    "two-axes-lines": curves.published_lines,
    "scaling": curves.scaling,
    "encoding": bars.encodings,
    "storage-staging": bars.storages,
    "where-time-goes": bars.shares,
    "ceilings": curves.under_ceilings,
    "training-time": curves.time,
    "enqueue-rate": grids.queue_maps,
    "loss": bars.losses,
    "utilisation": over_time.utilisations,
}


def all_charts(
    layout: CampaignLayout,
    table: pd.DataFrame,
    campaign: Campaign,
    points: Sequence[Mapping[str, Any]],
    order: Sequence[int],
) -> tuple[list[Chart], list[tuple[str, str]]]:
    """Charts that the data support, and (figure, what is missing) of the others.

    ``points`` are the page's data of points, ``order`` the places in it as they are to be offered.
    """
    charts: list[Chart] = []
    missing: list[tuple[str, str]] = []
    made = [(name, make(layout, table, campaign)) for name, make in MAKERS.items()]
    made.append(("step-time", over_time.steps(points, order)))
    for name, found in made:
        if isinstance(found, str):
            missing.append((name, found))
        else:
            charts += found
    return charts, missing
