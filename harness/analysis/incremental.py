"""What the last collection found: rows and steps of attempts whose evidence has not changed since are not read again.

``collected.json`` holds, in the order of the rows, each attempt's name, how many steps it has, what the ledger said of
it and the names, sizes and times of change of its evidence; the times of change of the directories that attempts appear
in; and a digest of this program's own analysis, so that another version reads everything anew; and a seal, so that a
damaged one counts as none. It is removed before
the derived files are replaced and written after them: a collection that was cut off leaves none.

Where nothing at all has changed, that costs one ``stat`` for each directory and each file of evidence. A directory
that changed within :data:`SETTLED_S` of a look at it may change again without showing it, and is looked into the next
time.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from harness.analysis import rows_table
from harness.analysis.campaigns import Attempt
from harness.analysis.steps_table import SCHEMA
from harness.files import SEAL_LENGTH, is_text, read_file, seal, write_atomically
from harness.layout import CampaignLayout

SETTLED_S = 2.0
#: [name, bytes, time of change in ns] of a file.
Stamp = list[Any]
#: As :func:`directories` for a campaign that is to be looked through the next time, whatever has changed.
UNSETTLED = [("", 0)]


@dataclass(frozen=True)
class Look:
    """An attempt's directory at one time: its own time of change (0: not settled) and its evidence's stamps."""

    changed_ns: int
    files: list[Stamp]

    @property
    def bytes(self) -> int:
        return sum(stamp[1] for stamp in self.files)


@cache
def program_digest() -> str:
    """SHA-256 over the sources that turn evidence into rows."""
    digest = hashlib.sha256()
    package = Path(__file__).resolve().parents[1]
    for path in sorted([*(package / "analysis").rglob("*.py"), *(package / "model").glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def look(attempt: Attempt) -> Look:
    """The evidence that the attempt's directory holds now."""
    root = str(attempt.layout.root)
    try:
        changed_ns = settled(root)
        with os.scandir(root) as entries:
            stats = [(entry.name, entry.stat()) for entry in entries if _is_evidence(entry.name)]
    except OSError:
        return Look(0, [])
    return Look(changed_ns, sorted([name, now.st_size, now.st_mtime_ns] for name, now in stats))


def _is_evidence(name: str) -> bool:
    is_ours = name.endswith((".json", ".jsonl")) and name.startswith(("events.", "samples.", "point.", "exit."))
    return is_ours and is_text(name)


def settled(directory: str | Path) -> int:
    """A directory's time of change in ns; 0 where it is too young to tell the next change from this one."""
    changed_ns = os.stat(directory).st_mtime_ns  # noqa: PTH116 - ten thousand times
    return changed_ns if time.time_ns() - changed_ns > SETTLED_S * 1e9 else 0


def told(attempt: Attempt) -> list[str | None]:
    """What the ledger says of an attempt, as far as its row shows it."""
    status = attempt.status
    return [status.state.value, status.reason, status.job_id] if status else []


class Previous:
    """The last collection. Empty where there was none, or where its files were touched since."""

    def __init__(self, layout: CampaignLayout):
        self._layout, self._runs = layout, str(layout.runs)
        self._record: dict[str, Any] = {}
        self._steps: pq.ParquetFile | None = None
        self._group: tuple[int, pa.Table] | None = None
        try:
            record = _read_record(layout)
            if record["program"] == program_digest() and record["files"] == _stamps(layout):
                self.rows = _read_rows(layout)
                self._open_steps()
                self._record = record
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            pass  # nothing to rely on: everything is read anew
        self._attempts = self._record.get("attempts", [])
        self._places = {entry[0]: place for place, entry in enumerate(self._attempts)}
        self._first_step = [0]
        for _, count, *_ in self._attempts:
            self._first_step.append(self._first_step[-1] + count)

    def _open_steps(self) -> None:
        self._steps = pq.ParquetFile(self._layout.steps_parquet)
        if not self._steps.schema_arrow.equals(SCHEMA):
            raise ValueError("other columns")

    @property
    def known(self) -> bool:
        """Whether there was a collection to rely on."""
        return bool(self._record)

    def unchanged(self) -> bool:
        """Whether neither the campaign, nor its ledger, nor any evidence has changed since."""
        if not self._record or self._record["inputs"] != inputs(self._layout):
            return False
        try:
            return all(map(self._same_directory, self._record["directories"])) and all(map(self._same, self._attempts))
        except OSError:
            return False

    def _same_directory(self, entry: tuple[str, int]) -> bool:
        name, changed_ns = entry
        return bool(changed_ns) and os.stat(f"{self._runs}/{name}").st_mtime_ns == changed_ns  # noqa: PTH116

    def _same(self, entry: Sequence[Any]) -> bool:
        name, _, _, changed_ns, files = entry
        root = f"{self._runs}/{name}"
        if not changed_ns or os.stat(root).st_mtime_ns != changed_ns:  # noqa: PTH116
            return False
        for file, size, file_changed_ns in files:
            now = os.stat(f"{root}/{file}")  # noqa: PTH116
            if now.st_mtime_ns != file_changed_ns or now.st_size != size:
                return False
        return True

    def place(self, name: str, attempt: Attempt, now: Look) -> int | None:
        """The attempt's place among the rows, where nothing about it has changed; None: read it."""
        place = self._places.get(name)
        if place is None:
            return None
        _, _, said, _, files = self._attempts[place]
        return place if files == now.files and said == told(attempt) and files else None

    def counts(self, first: int, count: int) -> list[int]:
        """How many steps each of these attempts has."""
        return [entry[1] for entry in self._attempts[first : first + count]]

    def steps(self, first: int, count: int) -> list[pa.Table]:
        """The steps of ``count`` attempts from place ``first`` on, as they were collected."""
        begin, end = self._first_step[first], self._first_step[first + count]
        tables, start = [], 0
        if self._steps is None or begin == end:
            return []
        for number in range(self._steps.num_row_groups):
            rows = self._steps.metadata.row_group(number).num_rows
            low, high = max(begin, start), min(end, start + rows)
            if low < high:
                tables.append(self._row_group(number).slice(low - start, high - low))
            start += rows
        return tables

    def _row_group(self, number: int) -> pa.Table:
        if self._group is None or self._group[0] != number:
            assert self._steps is not None
            self._group = number, self._steps.read_row_group(number)
        return self._group[1]

    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()


def _read_record(layout: CampaignLayout) -> dict[str, Any]:
    """The content of ``collected.json``.

    Raises:
        OSError, ValueError: where there is none, or not as it was written.
    """
    data = read_file(layout.collected)
    if data[-SEAL_LENGTH:] != seal(data[:-SEAL_LENGTH]):
        raise ValueError("its seal is broken")
    record: dict[str, Any] = orjson.loads(data)
    return record


def _read_rows(layout: CampaignLayout) -> pa.Table:
    with pq.ParquetFile(layout.runs_parquet) as file:  # pq.read_table would import pandas
        table = file.read()
    if not table.schema.equals(rows_table.SCHEMA):
        raise ValueError("other columns")
    return table


def names_of(layout: CampaignLayout, found: Sequence[Attempt]) -> list[str]:
    """The attempts' directories below the campaign's runs, their names in ``collected.json``."""
    above = len(str(layout.runs)) + 1
    return [str(attempt.layout.root)[above:] for attempt in found]


def inputs(layout: CampaignLayout) -> list[Any]:
    """Stamps of what the table is made from beside the attempts: the campaign, its ledger, its groups."""
    found: list[Any] = []
    for path in (layout.meta, layout.ledger, *sorted(layout.groups.glob("*/group.json"))):
        name = str(path.relative_to(layout.root))
        try:
            now = path.stat()
            found.append([name, now.st_size, now.st_mtime_ns])
        except OSError:
            found.append([name, None, None])
    return found


def directories(layout: CampaignLayout, names: Sequence[str]) -> list[tuple[str, int]]:
    """The directories in which attempts appear, with their times of change; to be asked for before they are read."""
    runs = str(layout.runs)
    points = dict.fromkeys(os.path.dirname(name) for name in names)  # noqa: PTH120
    shards = dict.fromkeys(os.path.dirname(name) for name in points)  # noqa: PTH120
    known = []
    for name in dict.fromkeys(["", *shards, *points]):
        try:
            known.append((name, settled(f"{runs}/{name}")))
        except OSError:
            known.append((name, 0))
    return known


def _stamps(layout: CampaignLayout) -> list[list[int]]:
    stats = [path.stat() for path in (layout.runs_parquet, layout.steps_parquet)]
    return [[s.st_size, s.st_mtime_ns] for s in stats]


def remember(
    layout: CampaignLayout,
    inputs: list[Any],
    directories: list[tuple[str, int]],
    found: Sequence[tuple[str, list[str | None], Look, int, bool]],
) -> None:
    """Write ``collected.json``, after the derived files.

    Args:
        inputs, directories: as they were before anything was read.
        found: each attempt's name, what the ledger :func:`told`, its directory as it was before it was read, the
            number of its steps, and whether it has a usable ``point.json``: what was planned may change, so the row of
            one without is made anew each time.
    """
    attempts = []
    for name, said, now, steps, described in found:
        kept = now if described else Look(0, [])
        attempts.append((name, steps, said, kept.changed_ns, kept.files))
    record: Mapping[str, Any] = {
        "program": program_digest(),
        "files": _stamps(layout),
        "inputs": inputs,
        "directories": directories,
        "attempts": attempts,
    }
    body = orjson.dumps(record)[:-1]
    write_atomically(layout.collected, body + seal(body))
