"""``steps.parquet``: every step of every rank of a campaign, written run by run so that memory stays small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness.analysis.campaigns import Attempt
from harness.analysis.evidence import RunEvidence, Steps
from harness.analysis.measure import Measurement
from harness.files import sync_directory
from harness.model.columns import STEP_TABLE_COLUMNS
from harness.model.event import STEP_COLUMNS

_TYPES = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
SCHEMA = pa.schema([(column.name, _TYPES[column.kind]) for column in STEP_TABLE_COLUMNS])


class StepsWriter:
    """Collects steps into a temporary file that replaces ``path`` on a clean exit and vanishes on any other."""

    def __init__(self, path: Path):
        self._path = path
        self._temporary = path.with_name(f".{path.name}.new")

    def __enter__(self) -> StepsWriter:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(self._temporary, SCHEMA)
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self._writer.close()
        if kind is not None:
            self._temporary.unlink(missing_ok=True)
            return
        self._temporary.replace(self._path)
        sync_directory(self._path.parent)

    def write(self, tables: list[pa.Table]) -> None:
        """Steps of one attempt, in whole tables: each becomes a row group."""
        for table in tables:
            self._writer.write_table(table)


def tables_of(attempt: Attempt, run: RunEvidence, measured: Measurement | None) -> list[pa.Table]:
    """The steps of all ranks of one attempt as at most one table; without a measurement their part is not known."""
    tables = [_table(attempt, rank.rank, rank.steps, measured) for rank in run.ranks if len(rank.steps)]
    return [pa.concat_tables(tables)] if tables else []


def _table(attempt: Attempt, rank: int, steps: Steps, measured: Measurement | None) -> pa.Table:
    count = len(steps)
    columns: dict[str, Any] = {
        "point_id": [attempt.point_id] * count,
        "repeat": np.full(count, attempt.repeat),
        "attempt": np.full(count, attempt.attempt),
        "rank": np.full(count, rank),
        "step": steps.step,
        "part": _parts(steps, measured),
    }
    for name in STEP_COLUMNS:
        values = steps[name]
        columns[name] = values.astype(np.int64) if name in ("fresh", "consumed") else values
    return pa.table(
        {field.name: pa.array(columns[field.name], field.type, from_pandas=True) for field in SCHEMA}, SCHEMA
    )


def _parts(steps: Steps, measured: Measurement | None) -> list[str | None]:
    if measured is None:
        return [None] * len(steps)
    after = np.where(steps.step >= measured.steady_step, "steady", "transient")
    return [str(part) for part in np.where(steps.step < measured.timed_step, "warmup", after)]
