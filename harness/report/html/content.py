"""What the report says of each point and run: rows of the table, and the data that a row opens to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pandas as pd

from harness.analysis import findings
from harness.analysis.dictionary import BY_NAME
from harness.analysis.points import PointResult, plain, sort_key
from harness.analysis.scaling import axis_word, naming_axes, point_label, primary_axis, series_along
from harness.files import read_file
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.findings_list import failures
from harness.report.grid import remarks, runs_text, speedups_of, text
from harness.report.html.traces import step_traces
from harness.report.numbers import DASH, duration, number, with_interval

#: Columns of a run that a reader wants first, in this order.
RUN_NUMBERS = ("images_per_s", "time_s", "steps_steady", "steps_left_out", "wait_share", "cpu_percent_mean", "job_s")
#: What a run's environment is made of.
ENVIRONMENT = (
    *("node", "cpu_model", "gpu_model", "gpu_driver", "os", "device", "python_version", "framework_version"),
    *("mpi_version", "versions", "threads", "launcher_binding", "cores_requested", "cores_allowed_min"),
    *("dataset_origin", "dataset_digest", "cache_state", "harness_version", "git_commit"),
)
#: Cells up to this length stay on one line.
LONG_CELL = 32
#: An axis with more values than this gets no menu of values above the table.
MOST_CHOICES = 12


@dataclass(frozen=True)
class Cell:
    """``shown`` and what it is sorted by: a number, or a text in lower case."""

    shown: str
    key: str

    @property
    def long(self) -> bool:
        """Whether it may be broken into lines."""
        return len(self.shown) > LONG_CELL


@dataclass(frozen=True)
class PointRow:
    """``index`` finds the point's data in the page's script."""

    index: int
    cells: tuple[Cell, ...]
    doubtful: bool


@dataclass(frozen=True)
class PointsTable:
    """``choices``: (column's number, its header, its values) of columns that get a menu."""

    headers: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[PointRow, ...]
    choices: tuple[tuple[int, str, tuple[str, ...]], ...]


def facts(table: pd.DataFrame, campaign: Campaign) -> list[tuple[str, str]]:
    """The line under the title: how much was measured, where, when and on what data."""
    counted = table[table["counts"].fillna(False).astype(bool)]
    done = int((counted["state"] == "SUCCEEDED").sum())
    found = [("cluster", campaign.cluster), ("points", str(len(campaign.points)))]
    found.append(("runs", f"{done} of {len(campaign.tasks)} measured"))
    for title, column in (("CPU", "cpu_model"), ("GPU", "gpu_model"), ("data", "dataset_origin")):
        if values := sorted({str(v) for v in table[column].dropna() if v != "none"}):
            found.append((title, ", ".join(values)))
    started = table["started_unix_s"].dropna()
    if len(started):
        first = datetime.fromtimestamp(float(started.min()), timezone.utc)
        found.append(("measured from", first.strftime("%Y-%m-%d %H:%M UTC")))
    return found


def points_table(results: Sequence[PointResult], campaign: Campaign) -> PointsTable:
    """The table of points as it first appears, in the order of ``results``."""
    axes = naming_axes(results, campaign.varied)
    axis = primary_axis(results, campaign.varied)
    speedups = speedups_of(series_along(results, campaign.varied, axis)) if axis else {}
    order = sorted(range(len(results)), key=lambda i: sort_key(results[i].axes.get(name) for name in axes))
    headers = [*(axis_word(name) for name in axes), "images/s", "time"]
    headers += ["speed-up"] if speedups else []
    rows = []
    for index in order:
        result = results[index]
        cells = [_axis_cell(result.axes.get(name)) for name in axes]
        cells += [_number_cell(with_interval(result.rate), result.rate.value)]
        cells += [_number_cell(duration(result.time.value), result.time.value)]
        if speedups:
            speedup = speedups.get((result.point_id, result.variant))
            shown = with_interval(speedup) if speedup else DASH
            cells.append(_number_cell(shown, speedup.value if speedup else math.nan))
        cells.append(Cell(runs_text(result, campaign.repeats), str(result.runs)))
        told = remarks(result)
        cells.append(Cell(told, told.lower()))
        rows.append(PointRow(index, tuple(cells), not result.trusted))
    numeric = tuple(_all_numbers(rows, place) for place in range(len(headers) + 2))
    return PointsTable((*headers, "runs", "remarks"), numeric, tuple(rows), _choices(axes, rows, headers))


def _axis_cell(value: Any) -> Cell:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Cell(text(value), repr(value) if is_number else text(value).lower())


def _number_cell(shown: str, value: float) -> Cell:
    return Cell(shown, repr(value) if math.isfinite(value) else "")


def _all_numbers(rows: Sequence[PointRow], place: int) -> bool:
    """Whether every known cell of a column sorts as a number."""
    try:
        return all(math.isfinite(float(row.cells[place].key or 0)) for row in rows)
    except ValueError:
        return False


def _choices(
    axes: Sequence[str], rows: Sequence[PointRow], headers: Sequence[str]
) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
    found = []
    for place in range(len(axes)):
        values = tuple(dict.fromkeys(row.cells[place].shown for row in rows))
        if 1 < len(values) <= MOST_CHOICES:
            found.append((place, headers[place], values))
    return tuple(found)


def points_data(
    layout: CampaignLayout, table: pd.DataFrame, results: Sequence[PointResult], campaign: Campaign
) -> list[dict[str, Any]]:
    """For each of ``results``: its axes, findings and runs, down to script, environment and step trace."""
    traces = step_traces(layout, len(table))
    names = naming_axes(results, campaign.varied)
    by_point = dict(iter(table.groupby("point_id")))
    points = []
    for result in results:
        runs = by_point[result.point_id]
        points.append(
            {
                "id": result.point_id,
                "label": point_label(result, names),
                "axes": [[name, text(value)] for name, value in result.axes.items() if value is not None],
                "findings": [str(f) for f in findings.unique((*failures(result), *result.findings))],
                "runs": [_run(layout, row, traces) for _, row in runs.iterrows()],
            }
        )
    return points


def _run(layout: CampaignLayout, row: Mapping[str, Any], traces: Mapping[tuple[str, int, int], Any]) -> dict[str, Any]:
    key = (str(row["point_id"]), int(row["repeat"]), int(row["attempt"]))
    attempt = layout.attempt(*key)
    try:
        script = read_file(attempt.script).decode(errors="replace")
    except OSError:
        script = ""
    return {
        "name": f"repeat {key[1]}, attempt {key[2]}",
        "state": str(row["state"]),
        "reason": str(plain(row["reason"]) or ""),
        "directory": str(attempt.root),
        "numbers": [[name, _number(name, row[name])] for name in RUN_NUMBERS if plain(row[name]) is not None],
        "environment": [[name, text(plain(row[name]))] for name in ENVIRONMENT if plain(row[name]) is not None],
        "script": script,
        "trace": traces.get(key),
    }


def _number(name: str, value: Any) -> str:
    column = BY_NAME[name]
    shown = str(int(value)) if column.kind == "int" else number(float(value))
    unit = "images/s" if column.unit == "1/s" else column.unit
    return f"{shown} {unit}".strip()
