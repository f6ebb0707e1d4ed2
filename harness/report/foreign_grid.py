"""The table of foreign logs for the terminal."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis.foreign.table import COLUMNS
from harness.analysis.points import plain
from harness.report.grid import Grid, text
from harness.report.numbers import DASH, number

#: An interval from so many times its lower end tells nothing.
_UNKNOWN = 10.0
_RATES = ("published_images_per_s", "mean_of_step_rates", "elapsed_images_per_s")


def logs_grid(found: pd.DataFrame) -> Grid:
    """A row for each configuration of a log: what varies, what was published, and what is true; remarks below."""
    fixed = {column.name for column in COLUMNS}
    own = [name for name in found.columns if name not in fixed]
    varied: list[str] = []
    for name in own:
        # of columns that say the same, the first
        same = any(found[name].astype(str).equals(found[other].astype(str)) for other in varied)
        if found[name].nunique(dropna=False) > 1 and not same:
            varied.append(name)
    headers = ("log", "line", *varied, "steps", "published", "mean of rates", "elapsed", "steady")
    rows = tuple(_row(row, varied) for _, row in found.iterrows())
    shared = [f"{name} {text(_whole(plain(found[name].iloc[0])))}" for name in own if found[name].nunique() == 1]
    notes = [f"All: {', '.join(shared)}."] if shared else []
    notes.append("images/s. published: as printed; mean of rates: arithmetic; elapsed: images / elapsed time.")
    notes += [f"{_place(row)}: {row['remark']}" for _, row in found.iterrows() if row["remark"]]
    numeric = (False, *(True for _ in headers[1:]))
    return Grid(f"{len(found)} configurations", headers, numeric, rows, tuple(notes))


def _place(row: pd.Series) -> str:
    return f"{Path(str(row['log'])).name}:{row['line']}"


def _row(row: pd.Series, varied: list[str]) -> tuple[str, ...]:
    return (
        Path(str(row["log"])).name,
        str(row["line"]),
        *(text(_whole(plain(row[name]))) for name in varied),
        str(row["steps"]),
        *(_rate(row[name]) for name in _RATES),
        _rate(row["images_per_s"]) + _interval(row),
    )


def _rate(value: Any) -> str:
    known = plain(value)
    return DASH if known is None else number(known)


def _interval(row: pd.Series) -> str:
    low, high = float(row["images_per_s_low"]), float(row["images_per_s_high"])
    if high > _UNKNOWN * low:
        return " [unknown]"
    return f" [{number(low)}, {number(high)}]" if math.isfinite(low) and high > low * (1 + 1e-9) else ""


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
