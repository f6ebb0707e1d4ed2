"""Tables for the terminal, for Markdown and for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import pandas as pd
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.analysis.points import PointResult, point_results
from harness.model.campaign import Campaign
from harness.report.grid import REMARKS, Grid, points_grid
from harness.report.prose import print_prose


def render_terminal(table: pd.DataFrame, campaign: Campaign, console: Console) -> None:
    """Print the table of points, its notes below."""
    print_grid(points_grid(table, campaign), console)


def print_grid(grid: Grid, console: Console) -> None:
    """Print a grid; texts are taken literally, no markup in a name is interpreted.

    Where the terminal is too narrow, intervals move to a second line and remarks below the table; where that is not
    enough, further columns follow in a table of their own. No word is broken and no column is lost.
    """
    if not grid.rows:
        console.print(Text(f"{grid.title}: nothing measured yet"))
    else:
        if _fitting(grid, console.width) is None:
            grid = _without_remarks(replace(grid, rows=tuple(tuple(map(_two_lines, row)) for row in grid.rows)))
        print_prose(console, Text(grid.title, style="bold"))
        for number, part in enumerate(_parts(grid, console.width)):
            if number:
                console.print()
            # a table without room is left to the terminal to break: nothing of it is cut off
            console.print(_rich_table(part, _fitting(part, console.width) or _least_widths(part)), crop=False)
    for note in grid.notes:
        print_prose(console, Text(note, style="dim"))
    console.print()


def _parts(grid: Grid, room: int) -> list[Grid]:
    """The grid itself where it fits; otherwise its columns in as many grids as it takes, each with the key columns."""
    if _fitting(grid, room) is not None:
        return [grid]
    least = [width + 2 for width in _least_widths(grid)]
    parts: list[list[int]] = [list(range(grid.keys))]
    for place in range(grid.keys, len(least)):
        parts[-1].append(place)
        if sum(least[number] for number in parts[-1]) - 2 > room and len(parts[-1]) > grid.keys + 1:
            parts[-1].pop()
            parts.append([*range(grid.keys), place])
    return [_chosen(grid, places) for places in parts]


def _chosen(grid: Grid, places: Sequence[int]) -> Grid:
    """These columns alone."""
    rows = tuple(tuple(row[place] for place in places) for row in grid.rows)
    headers, numeric = tuple(grid.headers[p] for p in places), tuple(grid.numeric[p] for p in places)
    return replace(grid, headers=headers, numeric=numeric, rows=rows)


def _rich_table(grid: Grid, widths: list[int]) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for header, numeric, width in zip(grid.headers, grid.numeric, widths, strict=True):
        side: Literal["left", "right"] = "right" if numeric else "left"
        shown.add_column(Text(header), justify=side, overflow="fold", min_width=width, max_width=width)
    for row in grid.rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown


def _without_remarks(grid: Grid) -> Grid:
    """Remarks, the last column, as a mark in the column before, and a note that says what they are."""
    if REMARKS not in grid.headers:
        return grid
    place = grid.headers.index(REMARKS)
    counts = Counter(remark for row in grid.rows for remark in row[place].split(", ") if remark)
    told = ", ".join(f"{remark} ({n})" if n > 1 else remark for remark, n in counts.most_common())
    rows = tuple((*row[: place - 1], row[place - 1] + (" *" if row[place] else "")) for row in grid.rows)
    notes = (f"* {told}; see `harness check`.", *grid.notes)
    return replace(grid, headers=grid.headers[:place], numeric=grid.numeric[:place], rows=rows, notes=notes)


def _fitting(grid: Grid, room: int) -> list[int] | None:
    """A width for each column so that no word is broken; what is left goes to the remarks. None: there is no room."""
    whole = [max(cell_len(header), least) for header, least in zip(grid.headers, _least_widths(grid), strict=True)]
    for widths in (whole, _least_widths(grid)):
        left = room - sum(widths) - 2 * (len(widths) - 1)
        if left >= 0:
            longest = [
                max(map(cell_len, [header, *cells])) for header, cells in zip(grid.headers, _columns(grid), strict=True)
            ]
            return [
                min(full, width + left) if header == REMARKS else width
                for header, width, full in zip(grid.headers, widths, longest, strict=True)
            ]
    return None


def _columns(grid: Grid) -> list[list[str]]:
    return [[row[number] for row in grid.rows] for number in range(len(grid.headers))]


def _least_widths(grid: Grid) -> list[int]:
    return [_least_width(header, cells) for header, cells in zip(grid.headers, _columns(grid), strict=True)]


def _least_width(header: str, cells: list[str]) -> int:
    """The width below which a column is hard to read: its longest line, but remarks may be folded at words."""
    if header == REMARKS:
        words = [word for cell in cells for word in cell.split()]
        return max([*map(cell_len, [header, *words]), min(_LEAST_REMARKS, max(map(cell_len, cells)))])
    lines = [line for cell in cells for line in cell.split("\n")]
    return min(max(map(cell_len, [*lines, *header.split()])), _MOST_WIDTH)


def _two_lines(cell: str) -> str:
    return cell.replace(" [", "\n[")


#: Longer cells are folded.
_MOST_WIDTH = 40
#: In a narrower column remarks would make rows of many lines.
_LEAST_REMARKS = 20


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
