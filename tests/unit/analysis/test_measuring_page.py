"""docs/measuring.md explains every column that is not an axis, and names every finding."""

from __future__ import annotations

from pathlib import Path

from harness.analysis.findings import CODES
from harness.model.columns import AXIS_COLUMNS, run_columns

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "measuring.md").read_text()


def test_every_measured_column_is_explained() -> None:
    section = PAGE[PAGE.index("## Column by column") :]
    named = [column.name for column in run_columns() if column not in AXIS_COLUMNS]
    assert [name for name in named if f"`{name}`" not in section] == []


def test_every_finding_is_listed() -> None:
    section = PAGE[PAGE.index("## Findings") : PAGE.index("## Column by column")]
    assert [code for code in CODES if f"`{code}`" not in section] == []
