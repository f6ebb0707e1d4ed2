"""Last loss against images/s: what repetition of batches costs in learning for what it gains in speed.

The loss is that over the test samples where runs have it (option ``validation_window``), else that of training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from harness.analysis.points import plain
from harness.analysis.scaling import label
from harness.model.campaign import Campaign
from harness.model.job import JobState
from harness.report.plots import style

NAME = "loss"


@dataclass(frozen=True)
class Outcome:
    """One run: images consumed per second, the last loss, and its group (batch interval, echo: those that vary)."""

    rate: float
    loss: float
    group: str
    validated: bool = False


def data(table: pd.DataFrame) -> list[Outcome] | str:
    """An outcome per measured run, or what is missing."""
    counted = table["counts"].fillna(False).astype(bool) & (table["state"] == JobState.SUCCEEDED.value)
    validated = bool(table.loc[counted, "validation_loss"].notna().any())
    column = "validation_loss" if validated else "loss_last"
    runs = table[counted & table[column].notna() & table["consumed_per_s"].notna()]
    runs = runs[runs[column].astype(float).abs() < math.inf]
    if runs["point_id"].nunique() < 2:
        return "fewer than two points have a loss"
    repeated = [axis for axis in ("batch_interval", "echo") if runs[axis].nunique() > 1]
    if not repeated:
        return "neither batch_interval nor echo was varied"
    return [
        Outcome(
            float(row["consumed_per_s"]),
            float(row[column]),
            label({axis: plain(row[axis]) for axis in repeated}),
            validated,
        )
        for _, row in runs.sort_values(repeated).iterrows()
    ]


def what(outcomes: Sequence[Outcome]) -> str:
    """Which loss it is."""
    return "validation loss after the last window" if outcomes[0].validated else "last training loss"


def draw(outcomes: list[Outcome], campaign: Campaign) -> Figure:
    """A marker per run, coloured by its group; very many groups in the order of their colours, without names."""
    figure, (ax,) = style.panels(1, width=6.5, height=4)
    groups = list(dict.fromkeys(outcome.group for outcome in outcomes))
    many = len(groups) > style.MOST_NAMED
    for index, group in enumerate(groups):
        members = [outcome for outcome in outcomes if outcome.group == group]
        look = style.crowd_style(index, len(groups)) | {"markersize": 8} if many else style.series_style(index)
        name = "" if many else style.wrapped(group)
        ax.plot([m.rate for m in members], [m.loss for m in members], label=name, **(look | {"linestyle": "none"}))
    ax.set_xlabel("images consumed per second (steady)")
    ax.set_ylabel(what(outcomes))
    ax.margins(0.15)
    style.legend_below(figure, style.handles_of([ax]))
    crowd = f"; dark to bright: {groups[0]} to {groups[-1]}" if many else ""
    style.note(figure, campaign, f"a marker per run; images consumed count repeated ones{crowd}")
    return figure


def figure(table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(table)
    return found if isinstance(found, str) else draw(found, campaign)
