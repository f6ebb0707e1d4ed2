"""images/s against cores (or workers, threads, nodes): images / elapsed time in the steady window."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from harness.model.campaign import Campaign
from harness.report.plots.along_axis import Curves, curves, draw_all_panels

NAME = "images-per-second"


def data(table: pd.DataFrame, campaign: Campaign) -> Curves | str:
    """Fresh images per second, or what is missing."""
    return curves(table, campaign, lambda step: step.result.rate)


def draw(curves: Curves, campaign: Campaign) -> Figure:
    return draw_all_panels(curves, campaign, "images/s (steady)")


def figure(table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(table, campaign)
    return found if isinstance(found, str) else draw(found, campaign)
