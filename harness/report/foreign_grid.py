"""The table of foreign logs for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis.foreign.table import COLUMNS
from harness.analysis.points import plain
from harness.report.grid import REMARKS, Grid, text
from harness.report.numbers import DASH, number


def logs_grid(found: pd.DataFrame) -> Grid:
    """A row for each configuration of a log: what varies, what was published, and what is true."""
    fixed = {column.name for column in COLUMNS}
    own = [name for name in found.columns if name not in fixed and found[name].nunique(dropna=False) > 1]
    headers = ("log", "line", *own, "steps", "published", "mean of rates", "elapsed", "steady", "95 %", REMARKS)
    numeric = (False, True, *(True for _ in own), *(True for _ in range(6)), False)
    rows = tuple(_row(row, own) for _, row in found.iterrows())
    notes = ["images/s. published: as printed; mean of rates: arithmetic; elapsed: images / elapsed time (harmonic)."]
    if shared := [name for name in found.columns if name not in fixed and name not in own]:
        facts = ", ".join(f"{name} {text(plain(found[name].iloc[0]))}" for name in shared)
        notes.append(f"All: {facts}.")
    return Grid(f"{len(found)} configurations", headers, numeric, rows, tuple(notes))


def _row(row: pd.Series, own: list[str]) -> tuple[str, ...]:
    low, high = plain(row["images_per_s_low"]), plain(row["images_per_s_high"])
    interval = f"{number(low)}–{number(high)}" if low is not None and high is not None else DASH
    rates = ("published_images_per_s", "mean_of_step_rates", "elapsed_images_per_s", "images_per_s")
    return (
        Path(str(row["log"])).name,
        str(row["line"]),
        *(text(_whole(plain(row[name]))) for name in own),
        str(row["steps"]),
        *(number(value) if (value := plain(row[name])) is not None else DASH for name in rates),
        interval,
        str(row["remark"]),
    )


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
