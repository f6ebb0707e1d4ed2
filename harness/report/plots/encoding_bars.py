"""images/s by the stored form of the samples: files decoded each time, or decoded once and stored."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from harness.model.campaign import Campaign
from harness.report.plots import bars

NAME = "encoding"


def data(table: pd.DataFrame, campaign: Campaign) -> bars.Bars | str:
    return bars.data(table, campaign, "encoding")


def figure(table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(table, campaign)
    return found if isinstance(found, str) else bars.draw(found, campaign)
