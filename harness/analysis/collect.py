"""Evidence of a campaign → one tidy table, a row per attempt; written as CSV and Parquet, each replaced at once."""

from __future__ import annotations

import io
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa

from harness.analysis import findings, row
from harness.analysis.campaigns import Attempt, attempts, extra_canaries, load_campaign, state_of
from harness.analysis.dictionary import RUN_COLUMNS
from harness.analysis.evidence import RunEvidence, read_run
from harness.analysis.findings import Finding
from harness.analysis.incremental import Previous, fingerprint, name, remember
from harness.analysis.measure import Measurement
from harness.analysis.steps_table import StepsWriter, tables_of
from harness.files import write_atomically
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.model.columns import Column
from harness.model.job import JobState

Progress = Callable[[int, int], None]
#: A row of the table of runs, and the steps of its attempt.
Read = tuple[dict[str, Any], list[pa.Table]]

#: Starting a process costs as much as reading some hundred attempts.
PARALLEL_FROM = 300
MOST_WORKERS = 8
CHUNK = 16

_DTYPES = {"text": "string", "int": "Int64", "float": "float64", "bool": "boolean"}
_CONVERTERS: dict[str, Callable[[Any], Any]] = {"text": str, "int": round, "float": float, "bool": bool}


def collect(layout: CampaignLayout, progress: Progress | None = None) -> pd.DataFrame:
    """Read a campaign's evidence; write ``runs.csv``, ``runs.parquet`` and ``steps.parquet``; return the runs.

    Attempts whose evidence has not changed since the last collection are taken from its tables.

    Args:
        progress: called with (attempts read, attempts in all) after each one.

    Raises:
        UserError: where ``layout`` holds no campaign.
    """
    campaign = load_campaign(layout)
    found = attempts(layout)
    previous = Previous(layout)
    layout.collected.unlink(missing_ok=True)
    # before any file is read: what is written meanwhile is seen the next time
    prints = [fingerprint(attempt, campaign.points.get(attempt.point_id)) for attempt in found]
    known = [previous.row(attempt, now) for attempt, now in zip(found, prints, strict=True)]
    fresh = read_all(campaign, [a for a, cells in zip(found, known, strict=True) if cells is None])
    rows = []
    with StepsWriter(layout.steps_parquet) as steps:
        for number, (attempt, cells) in enumerate(zip(found, known, strict=True), 1):
            row_cells, tables = next(fresh) if cells is None else (cells, previous.steps(attempt))
            steps.write(tables)
            rows.append(row_cells)
            if progress is not None:
                progress(number, len(found))
    previous.close()
    table = as_table(mark_attempts(rows, extra_canaries(layout, campaign)))
    write(table, layout)
    remember(layout, {name((a.point_id, a.repeat, a.attempt)): now for a, now in zip(found, prints, strict=True)})
    return table


def read_all(campaign: Campaign, chosen: list[Attempt]) -> Iterator[Read]:
    """Rows and steps of the attempts, in their order; by several processes where there are many attempts and CPUs."""
    workers = min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    if len(chosen) < PARALLEL_FROM or workers < 2:
        yield from (read_attempt(campaign, attempt) for attempt in chosen)
        return
    # spawn: this process may have threads, which a forked one would find stopped in the middle of anything
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context) as pool:
        yield from pool.map(partial(read_attempt, campaign), chosen, chunksize=CHUNK)


def read_attempt(campaign: Campaign, attempt: Attempt) -> Read:
    """One attempt's row and its steps."""
    run = read_run(attempt.layout)
    planned = campaign.points.get(attempt.point_id)
    state, reason = state_of(attempt, run.spec)
    cells: dict[str, Any] = {
        "campaign": campaign.name,
        "point_id": attempt.point_id,
        "repeat": attempt.repeat,
        "attempt": attempt.attempt,
        "state": state.value,
        "reason": reason or None,
        "job_id": attempt.status.job_id or None if attempt.status else None,
    }
    source = run.spec or planned
    if source is not None:
        cells |= row.axes_cells(source.axes) | row.placement_cells(source.placement)
    if run.spec is not None:
        cells |= {"harness_version": run.spec.harness_version, "git_commit": run.spec.git_commit}
    measured_cells, found, measured = _measured(run, state)
    cells |= {name: value for name, value in measured_cells.items() if value is not None}
    cells["findings"] = findings.to_json(found)
    return cells, tables_of(attempt, run, measured)


def _measured(run: RunEvidence, state: JobState) -> tuple[dict[str, Any], list[Finding], Measurement | None]:
    """Cells, findings and measurement of a run; one whose events hold nonsense must not cost the others their table."""
    try:
        return row.run_cells(run, state)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        text = f"{type(error).__name__}: {error}"
        advice = "Its events were written by another version or are damaged; look at them, or measure again."
        return {}, [findings.make("evidence_unreadable", advice, error=text)], None


def mark_attempts(rows: list[dict[str, Any]], canaries: Collection[tuple[str, int]] = ()) -> list[dict[str, Any]]:
    """Adds ``latest`` (no later attempt) and ``counts`` (the newest success of its repeat, else the newest).

    Args:
        canaries: (point, repeat) of runs beyond the sweep's, which tell of a node's drift and count for no point.
    """
    tasks: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for cells in rows:
        tasks.setdefault((cells["point_id"], cells["repeat"]), []).append(cells)
    for task, tries in tasks.items():
        newest = max(tries, key=lambda cells: cells["attempt"])
        done = [cells for cells in tries if cells["state"] == JobState.SUCCEEDED.value]
        counting = max(done, key=lambda cells: cells["attempt"]) if done else newest
        for cells in tries:
            cells["latest"], cells["counts"] = cells is newest, cells is counting and task not in canaries
    return rows


def as_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a table with exactly the columns of the data dictionary, typed; unknown cells are NA."""
    rows = list(rows)
    table = pd.DataFrame({c.name: _typed([r.get(c.name) for r in rows], c) for c in RUN_COLUMNS})
    return table.reset_index(drop=True)


def _typed(values: list[Any], column: Column) -> pd.Series:
    convert = _CONVERTERS[column.kind]
    cells: list[Any] = []
    for value in values:
        try:
            cells.append(None if value is None else convert(value))
        except (TypeError, ValueError, OverflowError):
            cells.append(None)  # an event that holds something else than its vocabulary says: unknown
    return pd.Series(cells, dtype=_DTYPES[column.kind])


def write(table: pd.DataFrame, layout: CampaignLayout) -> None:
    """Write ``runs.csv`` and ``runs.parquet``; readers see the old files or the new ones, never half of either."""
    write_atomically(layout.runs_csv, table.to_csv(index=False, lineterminator="\n"))
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    write_atomically(layout.runs_parquet, buffer.getvalue())
