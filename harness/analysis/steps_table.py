"""``steps.parquet``: every step of every rank of a campaign, written piece by piece so that memory stays small."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness.analysis import arrow
from harness.files import naming, sync_directory
from harness.model.columns import STEP_TABLE_COLUMNS
from harness.model.event import STEP_COLUMNS

if TYPE_CHECKING:
    from harness.analysis.evidence import RunEvidence
    from harness.analysis.measure import Measurement
    from harness.analysis.step_columns import Steps

Key = tuple[str, int, int]

_TYPES = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
#: As the file is read; while it is written, its texts are dictionaries.
SCHEMA = pa.schema([(column.name, _TYPES[column.kind]) for column in STEP_TABLE_COLUMNS])
_WRITTEN = pa.schema(
    [(f.name, pa.dictionary(pa.int32(), pa.string()) if pa.types.is_string(f.type) else f.type) for f in SCHEMA]
)
_PARTS = ("warmup", "transient", "steady")
_WHOLE = ("fresh", "consumed")
#: Columns of few values, which dictionaries make small; those of times would only cost time.
_REPETITIVE = ["point_id", "repeat", "attempt", "rank", "part", "exchange_s", *_WHOLE, "occupancy"]
ROW_GROUP = 1 << 17


class StepsWriter:
    """Collects steps into a temporary file that replaces ``path`` on a clean exit and vanishes on any other."""

    def __init__(self, path: Path):
        self._path = path
        self._temporary = path.with_name(f".{path.name}.new")
        self._waiting: list[pa.Table] = []
        self._rows = 0

    def __enter__(self) -> StepsWriter:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(
            self._temporary, _WRITTEN, use_dictionary=_REPETITIVE, write_statistics=["rank"], store_schema=False
        )
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            with naming(self._path):
                if kind is None:
                    self._flush()
                self._writer.close()
                if kind is None:
                    self._temporary.replace(self._path)
        finally:  # it is there yet where the disk was full, too
            self._temporary.unlink(missing_ok=True)
        sync_directory(self._path.parent)

    def write(self, table: pa.Table) -> None:
        """Add steps, as :func:`table_of` or the file itself has them; they may come in pieces of any size."""
        self._waiting.append(table)
        self._rows += len(table)
        if self._rows >= ROW_GROUP:
            with naming(self._path):
                self._flush()

    def _flush(self) -> None:
        if self._rows:
            tables = [table.cast(_WRITTEN) for table in self._waiting]
            self._writer.write_table(pa.concat_tables(tables).unify_dictionaries(), row_group_size=4 * ROW_GROUP)
        self._waiting, self._rows = [], 0


def table_of(runs: Sequence[tuple[Key, RunEvidence, Measurement | None]]) -> pa.Table:
    """The steps of all ranks of these attempts; the part of steps without a measurement is not known."""
    pieces = [(key, rank.rank, rank.steps, measured) for key, run, measured in runs for rank in run.ranks]
    counts = np.array([len(steps) for _, _, steps, _ in pieces], dtype=np.int64)
    columns: dict[str, pa.Array] = {
        "point_id": _texts([key[0] for key, *_ in pieces], counts),
        "repeat": _repeated([key[1] for key, *_ in pieces], counts),
        "attempt": _repeated([key[2] for key, *_ in pieces], counts),
        "rank": _repeated([rank for _, rank, *_ in pieces], counts),
        "step": arrow.numbers(_joined([steps.step for _, _, steps, _ in pieces], np.int64)),
        "part": pa.DictionaryArray.from_arrays(_part_codes(pieces), arrow.texts(_PARTS, pa.string())),
    }
    for name in STEP_COLUMNS:
        values = _joined([steps[name] for _, _, steps, _ in pieces], np.float64)
        columns[name] = _whole(values) if name in _WHOLE else arrow.floats(values)
    return pa.Table.from_arrays([columns[field.name] for field in _WRITTEN], schema=_WRITTEN)


def _whole(values: Any) -> pa.Array:
    """Floats as integers, null where there is none for them: nonsense in damaged evidence."""
    none = ~(np.abs(values) < 2.0**63)
    return arrow.numbers(np.where(none, 0.0, values).astype(np.int64), none)


def _joined(arrays: list[Any], kind: Any) -> Any:
    return np.concatenate(arrays) if arrays else np.zeros(0, kind)


def _texts(values: list[str], counts: Any) -> pa.DictionaryArray:
    places = {text: place for place, text in enumerate(dict.fromkeys(values))}
    codes = np.array([places[text] for text in values], dtype=np.int32)
    return pa.DictionaryArray.from_arrays(
        arrow.numbers(np.repeat(codes, counts)), arrow.texts(list(places), pa.string())
    )


def _repeated(values: list[int], counts: Any) -> pa.Array:
    return arrow.numbers(np.repeat(np.array(values, dtype=np.int64), counts))


def _part_codes(pieces: Sequence[tuple[Key, int, Steps, Measurement | None]]) -> pa.Array:
    """0 for steps before the timed ones, 1 up to the steady ones, 2 from there on; null without a measurement."""
    codes, counts = [], []
    for _, _, steps, measured in pieces:
        count = len(steps)
        if measured is None:
            codes.append(-1)
            counts.append(count)
            continue
        # the numbers of steps rise
        timed, steady = steps.step.searchsorted((measured.timed_step, measured.steady_step)).tolist()
        steady = max(timed, steady)
        codes += (0, 1, 2)
        counts += (timed, steady - timed, count - steady)
    repeated = np.repeat(np.array(codes, dtype=np.int32), np.array(counts, dtype=np.int64))
    return arrow.numbers(repeated, repeated < 0)
