"""Exports of the points: LaTeX and Parquet."""

from __future__ import annotations

import io
import json
import re

import pandas as pd

from harness.model.campaign import Campaign
from harness.report.grid import Grid
from harness.report.tables import points_records

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "×": r"$\times$"}
_LATEX |= {c: "\\" + c for c in "&%$#_{}"}
_SPECIAL = re.compile("|".join(re.escape(c) for c in _LATEX))


def to_latex(grid: Grid) -> str:
    """The grid as a ``tabular`` of the booktabs package; texts are escaped, notes stand below as comments."""
    columns = "".join("r" if numeric else "l" for numeric in grid.numeric)
    lines = [f"% {_one_line(grid.title)}", f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
    lines += [" & ".join(map(_latex, grid.headers)) + r" \\", "\\midrule"]
    lines += [" & ".join(map(_latex, row)) + r" \\" for row in grid.rows]
    lines += ["\\bottomrule", "\\end{tabular}"]
    lines += [f"% {_one_line(note)}" for note in grid.notes]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _latex(cell: str) -> str:
    # a cell that begins with a bracket would be read as the argument of the line break before it
    escaped = _SPECIAL.sub(lambda match: _LATEX[match[0]], _one_line(cell))
    return "{}" + escaped if escaped.startswith("[") else escaped


def to_parquet(table: pd.DataFrame, campaign: Campaign) -> bytes:
    """The points with full numbers, a row each, varied axes as columns ``axis.<name>``."""
    rows = []
    for record in points_records(table, campaign):
        axes, states = record.pop("axes"), record.pop("states")
        codes = record.pop("findings")
        rows.append(
            {f"axis.{name}": value for name, value in axes.items()}
            | record
            | {"states": json.dumps(states), "findings": json.dumps(codes)}
        )
    buffer = io.BytesIO()
    pd.DataFrame(rows).to_parquet(buffer, index=False)
    return buffer.getvalue()
