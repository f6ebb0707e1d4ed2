"""Tables for the terminal, for Markdown and for spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.analysis.points import PointResult, point_results
from harness.model.campaign import Campaign
from harness.report.grid import Grid, points_grid


def render_terminal(table: pd.DataFrame, campaign: Campaign, console: Console) -> None:
    """Print the table of points, its notes below."""
    print_grid(points_grid(table, campaign), console)


def print_grid(grid: Grid, console: Console) -> None:
    """Print a grid; texts are taken literally, no markup in a name is interpreted."""
    if not grid.rows:
        console.print(Text(f"{grid.title}: nothing measured yet"))
    else:
        shown = Table(title=Text(grid.title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
        for header, numeric in zip(grid.headers, grid.numeric, strict=True):
            shown.add_column(Text(header), justify="right" if numeric else "left", overflow="fold")
        for row in grid.rows:
            shown.add_row(*(Text(cell) for cell in row))
        console.print(shown)
    for note in grid.notes:
        console.print(Text(note, style="dim"), soft_wrap=True)


def to_csv(grid: Grid) -> str:
    """The grid as CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(grid.headers)
    writer.writerows(grid.rows)
    return stream.getvalue()


def to_markdown(grid: Grid) -> str:
    """The grid as a Markdown table, notes below."""
    lines = ["| " + " | ".join(map(_escape, grid.headers)) + " |"]
    lines.append("|" + "|".join("---:" if numeric else ":---" for numeric in grid.numeric) + "|")
    lines += ["| " + " | ".join(map(_escape, row)) + " |" for row in grid.rows]
    lines += [f"\n{note}" for note in grid.notes]
    return "\n".join(lines) + "\n"


def _escape(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def points_records(table: pd.DataFrame, campaign: Campaign) -> list[dict[str, Any]]:
    """The points with full numbers, for scripts (JSON)."""
    return [_record(result, campaign) for result in point_results(table)]


def _record(result: PointResult, campaign: Campaign) -> dict[str, Any]:
    rate, time = result.rate, result.time
    return {
        "campaign": campaign.name,
        "point_id": result.point_id,
        "variant": result.variant,
        "axes": {name: result.axes.get(name) for name in campaign.varied},
        "images_per_s": _or_none(rate.value),
        "images_per_s_low": _or_none(rate.low) if rate.known else None,
        "images_per_s_high": _or_none(rate.high) if rate.known else None,
        "interval": rate.kind,
        "time_s": _or_none(time.value),
        "runs": result.runs,
        "unsteady_runs": result.unsteady,
        "trusted": result.trusted,
        "states": dict(result.states),
        "findings": sorted({finding.code for finding in result.findings}),
    }


def _or_none(value: float) -> float | None:
    return value if value == value and abs(value) != float("inf") else None
