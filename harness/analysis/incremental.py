"""What the last collection found: rows and steps of attempts whose evidence has not changed since are not read again.

``collected.json`` holds, for each attempt, the names, sizes and times of change of its files; and a digest of this
program's own analysis, so that another version reads everything anew. It is removed before the derived files are
replaced and written after them: a collection that was cut off leaves none.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness.analysis.campaigns import Attempt
from harness.analysis.points import plain
from harness.analysis.steps_table import SCHEMA
from harness.files import write_atomically
from harness.layout import CampaignLayout
from harness.model.campaign import PlannedPoint

Key = tuple[str, int, int]


@cache
def program_digest() -> str:
    """SHA-256 over the sources that turn evidence into rows."""
    digest = hashlib.sha256()
    package = Path(__file__).resolve().parents[1]
    for path in sorted([*(package / "analysis").rglob("*.py"), *(package / "model").glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def fingerprint(attempt: Attempt, planned: PlannedPoint | None) -> str:
    """Changes whenever a file of the attempt, its line in the ledger or its plan does."""
    try:
        with os.scandir(attempt.layout.root) as entries:
            files = sorted((e.name, s.st_size, s.st_mtime_ns) for e in entries if (s := e.stat()))
    except OSError:
        files = []
    text = repr((files, attempt.status, planned.model_dump_json() if planned else None))
    return hashlib.sha256(text.encode()).hexdigest()


class Previous:
    """The last collection's rows and steps. Empty where there was none, or where its files were touched since."""

    def __init__(self, layout: CampaignLayout):
        self._rows: dict[Key, dict[str, Any]] = {}
        self._groups: dict[Key, list[int]] = {}
        self._fingerprints: dict[str, str] = {}
        self._steps: pq.ParquetFile | None = None
        try:
            record = json.loads(layout.collected.read_bytes())
            if record["program"] == program_digest() and record["files"] == _stamps(layout):
                self._read(layout)
                self._fingerprints = dict(record["attempts"])
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            # nothing to rely on: everything is read anew
            self._rows, self._groups, self._steps = {}, {}, None

    def _read(self, layout: CampaignLayout) -> None:
        for row in pd.read_parquet(layout.runs_parquet).to_dict("records"):
            cells = {str(name): plain(value) for name, value in row.items()}
            self._rows[cells["point_id"], cells["repeat"], cells["attempt"]] = cells
        self._steps = pq.ParquetFile(layout.steps_parquet)
        if not self._steps.schema_arrow.equals(SCHEMA):
            raise ValueError("other columns")
        for number in range(self._steps.num_row_groups):
            columns = self._steps.read_row_group(number, ["point_id", "repeat", "attempt"]).slice(0, 1).to_pylist()
            for first in columns:
                self._groups.setdefault((first["point_id"], first["repeat"], first["attempt"]), []).append(number)

    def row(self, attempt: Attempt, now: str) -> dict[str, Any] | None:
        """The attempt's row, where nothing has changed; None: read it."""
        key = attempt.point_id, attempt.repeat, attempt.attempt
        same = self._fingerprints.get(name(key)) == now
        return dict(self._rows[key]) if same and key in self._rows else None

    def steps(self, attempt: Attempt) -> list[pa.Table]:
        """The attempt's steps as they were collected."""
        groups = self._groups.get((attempt.point_id, attempt.repeat, attempt.attempt), [])
        return [self._steps.read_row_group(number) for number in groups] if self._steps is not None else []

    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()


def name(key: Key) -> str:
    """An attempt's name in ``collected.json``."""
    return f"{key[0]}/{key[1]}/{key[2]}"


def _stamps(layout: CampaignLayout) -> list[list[int]]:
    stats = [path.stat() for path in (layout.runs_parquet, layout.steps_parquet)]
    return [[s.st_size, s.st_mtime_ns] for s in stats]


def remember(layout: CampaignLayout, fingerprints: dict[str, str]) -> None:
    """Write ``collected.json``, after the derived files."""
    record = {"program": program_digest(), "files": _stamps(layout), "attempts": fingerprints}
    write_atomically(layout.collected, json.dumps(record, separators=(",", ":")))
