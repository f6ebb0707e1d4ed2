"""Training time against cores (or workers, threads, nodes): time of the sweep's timed steps, lower is better."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from harness.model.campaign import Campaign
from harness.report.plots.along_axis import Curves, curves, draw_all_panels

NAME = "training-time"


def data(table: pd.DataFrame, campaign: Campaign) -> Curves | str:
    """Seconds for the timed steps, or what is missing."""
    return curves(table, campaign, lambda step: step.result.time)


def draw(curves: Curves, campaign: Campaign, steps_timed: str) -> Figure:
    return draw_all_panels(curves, campaign, f"training time, s ({steps_timed})")


def figure(table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(table, campaign)
    if isinstance(found, str):
        return found
    counts = sorted({planned.axes.steps_timed for planned in campaign.points.values()})
    steps = f"{counts[0]} steps" if len(counts) == 1 else "timed steps"
    return draw(found, campaign, steps)
