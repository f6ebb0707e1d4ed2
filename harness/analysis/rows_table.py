"""Rows of the table of runs as Arrow, pandas and CSV: the columns of the data dictionary, typed; unknown is NA."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from harness.analysis import arrow
from harness.analysis.dictionary import RUN_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

_TYPES = {"text": pa.large_string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
_CONVERTERS: dict[str, Callable[[Any], Any]] = {"text": str, "int": round, "float": float, "bool": bool}
#: Types of cells that need no conversion.
_EXACT = {"text": {str, NoneType}, "int": {int, NoneType}, "float": {float, NoneType}, "bool": {bool, NoneType}}
#: pandas' own types, which it restores when it reads the file: integers and truth values that may be unknown.
_PANDAS = {
    "text": ("unicode", "string"),
    "int": ("int64", "Int64"),
    "float": ("float64", "float64"),
    "bool": ("bool", "boolean"),
}


def _pandas_metadata() -> bytes:
    """What pandas keeps in a Parquet file beside the table (its developer documentation has the format)."""
    columns = [
        {"name": c.name, "field_name": c.name, "pandas_type": kind, "numpy_type": numpy_type, "metadata": None}
        for c in RUN_COLUMNS
        for kind, numpy_type in [_PANDAS[c.kind]]
    ]
    creator = {"library": "pyarrow", "version": pa.__version__}
    about = {"index_columns": [], "column_indexes": [], "columns": columns, "attributes": {}, "creator": creator}
    return json.dumps(about | {"pandas_version": "2.2.0"}).encode()


SCHEMA = pa.schema([(c.name, _TYPES[c.kind]) for c in RUN_COLUMNS], metadata={b"pandas": _pandas_metadata()})


def rows_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as a table; a cell that does not hold what its column is for is unknown."""
    present = {name for row in rows for name in row}
    columns = [
        _typed([row.get(c.name) for row in rows], c.kind) if c.name in present else pa.nulls(len(rows), _TYPES[c.kind])
        for c in RUN_COLUMNS
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _typed(values: list[Any], kind: str) -> pa.Array:
    if values.count(None) == len(values):
        return pa.nulls(len(values), _TYPES[kind])
    try:
        return _array(values, kind)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        # an event that holds something else than its vocabulary says: unknown
        return pa.concat_arrays([_cell(value, kind) for value in values])


def _cell(value: Any, kind: str) -> pa.Array:
    try:
        return _array([value], kind)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        return pa.nulls(1, _TYPES[kind])


def _array(values: list[Any], kind: str) -> pa.Array:
    if not _EXACT[kind].issuperset(map(type, values)):
        convert = _CONVERTERS[kind]
        values = [None if value is None else convert(value) for value in values]
    if kind == "text":
        return arrow.texts(values, _TYPES[kind])
    if kind == "bool":
        return arrow.truths(values)
    if kind == "float":
        return arrow.floats(np.array([math.nan if value is None else value for value in values], dtype=np.float64))
    unknown = np.array([value is None for value in values], dtype=bool)
    return arrow.numbers(np.array([0 if value is None else value for value in values], dtype=np.int64), unknown)


def to_frame(table: pa.Table) -> pd.DataFrame:
    """The table with pandas' types for values that may be unknown."""
    frame: pd.DataFrame = table.replace_schema_metadata(SCHEMA.metadata).to_pandas()
    return frame


def csv_text(table: pa.Table) -> str:
    """The table as CSV, numbers in their shortest form that reads back as they are, unknown cells empty."""
    columns = [_texts(column) for column in table.columns]
    lines = [",".join(_cells(table.column_names)), *map(",".join, zip(*columns, strict=True))]
    return "\n".join([*lines, ""])


def _texts(column: pa.ChunkedArray) -> Sequence[str]:
    if column.null_count == len(column):
        return [""] * len(column)
    values = column.to_pylist()
    if pa.types.is_large_string(column.type):
        return _cells(["" if value is None else value for value in values])
    return ["" if value is None else repr(value) for value in values]


def _cells(texts: list[str]) -> list[str]:
    """Texts as cells of CSV; most occur in many rows."""
    cells = {text: '"' + text.replace('"', '""') + '"' if _ENDS_A_CELL(text) else text for text in set(texts)}
    return [cells[text] for text in texts]


_ENDS_A_CELL = re.compile('[",\r\n]').search
