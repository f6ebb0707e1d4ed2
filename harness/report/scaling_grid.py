"""The scaling table: rate, speed-up and efficiency along one axis, interval and n in each cell."""

from __future__ import annotations

import pandas as pd

from harness.analysis.points import point_results
from harness.analysis.scaling import axis_word, label, primary_axis, series_along
from harness.errors import UserError
from harness.model.campaign import Campaign
from harness.report.grid import Grid, base_notes, interval_note, text
from harness.report.numbers import percent, with_interval


def scaling_grid(table: pd.DataFrame, campaign: Campaign, axis: str | None = None) -> Grid:
    """A row for each point of each series along ``axis`` (default: the primary one).

    Raises:
        UserError: where no numeric axis was varied.
    """
    results = point_results(table)
    axis = axis or primary_axis(results, campaign.varied)
    if axis is None:
        raise UserError(f"{campaign.name} varies no numeric axis: there is nothing that scales")
    several = False
    rows = []
    found = series_along(results, campaign.varied, axis)
    for series in found:
        several = several or bool(series.key)
        for step in series.steps:
            doubt = "" if step.result.trusted else " ?"
            rate = f"{with_interval(step.result.rate)} n={step.result.runs}{doubt}"
            rows.append((label(series.key), text(step.x), rate, with_interval(step.speedup), percent(step.efficiency)))
    headers = ("series", axis_word(axis), "images/s", "speed-up", "efficiency")
    numeric = (False, True, True, True, True)
    shown = [step.result for series in found for step in series.steps]
    notes = [f"{interval_note(shown)} n: runs. Speed-up: against the first point of the series."]
    notes += ["?: not to be relied on, see `harness check`."] if any(" ?" in row[2] for row in rows) else []
    notes += base_notes(found)
    first = 0 if several else 1
    cells = tuple(row[first:] for row in rows)
    return Grid(f"{campaign.name}: scaling", headers[first:], numeric[first:], cells, tuple(notes))
