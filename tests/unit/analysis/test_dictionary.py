"""The data dictionary is current, complete, and agrees with what collect writes."""

from __future__ import annotations

from pathlib import Path

from harness.analysis import dictionary
from harness.analysis.collect import as_table
from harness.model.axes import Axes
from harness.model.columns import MUST_MATCH

ROOT = Path(__file__).resolve().parents[3]


def test_the_committed_dictionary_is_current() -> None:
    committed = (ROOT / "results/data_dictionary.md").read_text(encoding="utf-8")
    assert committed == dictionary.dictionary_markdown(), (
        "run: harness collect --dictionary > results/data_dictionary.md"
    )


def test_every_axis_is_a_column() -> None:
    assert set(Axes.model_fields) - {"options"} <= set(dictionary.BY_NAME)


def test_columns_are_named_once_and_described() -> None:
    names = [column.name for column in dictionary.RUN_COLUMNS]
    assert len(names) == len(set(names))
    assert all(len(column.meaning) > 8 for column in dictionary.RUN_COLUMNS)
    assert set(MUST_MATCH) <= set(names)


def test_units_are_in_the_names() -> None:
    for column in dictionary.RUN_COLUMNS:
        if column.unit == "s":
            assert column.name.endswith("_s"), column.name
        if column.unit == "B":
            assert column.name.endswith("_bytes"), column.name


def test_a_table_has_exactly_these_columns() -> None:
    assert list(as_table([]).columns) == [column.name for column in dictionary.RUN_COLUMNS]
