"""Training time against cores (or workers, threads, nodes): time of the sweep's timed steps, lower is better."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from harness.analysis.points import point_results
from harness.model.campaign import Campaign
from harness.report.grid import unlike_steps
from harness.report.plots.along_axis import Curves, Panel, curves, draw_all_panels

NAME = "training-time"


def data(table: pd.DataFrame, campaign: Campaign) -> Curves | str:
    """Seconds for the timed steps, or what is missing."""
    found = curves(table, campaign, lambda step: step.result.time)
    if isinstance(found, str) or not unlike_steps([r for r in point_results(table) if r.runs]):
        return found
    told = "steps are not of one number of images: compare images/s"
    return replace(found, remark="; ".join(part for part in (found.remark, told) if part))


def draw(curves: Curves, campaign: Campaign) -> Figure:
    """The numbers of timed steps stand in the panels' titles: times of unlike numbers must not be compared."""
    panels = tuple(replace(panel, title=f"{panel.title} · {_steps(panel)}") for panel in curves.panels)
    return draw_all_panels(replace(curves, panels=panels), campaign, "training time, s")


def _steps(panel: Panel) -> str:
    return " or ".join(str(count) for count in panel.steps_timed) + " steps"


def figure(table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(table, campaign)
    return found if isinstance(found, str) else draw(found, campaign)
