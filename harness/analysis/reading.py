"""Attempts → rows and steps, in pieces that several processes may read at once."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from harness.analysis import findings, row
from harness.analysis.campaigns import Attempt, state_of
from harness.analysis.evidence import RunEvidence, read_run
from harness.analysis.findings import Finding
from harness.analysis.measure import Measurement
from harness.analysis.rows_table import rows_table
from harness.analysis.steps_table import table_of
from harness.model.campaign import PlannedPoint
from harness.model.job import JobState

Planned = Mapping[str, PlannedPoint]

#: Starting a process costs as much as reading some thousand attempts.
PARALLEL_FROM = 1500
MOST_WORKERS = 8
#: A piece holds at most so many attempts, and about so many bytes of evidence.
PIECE_ATTEMPTS = 128
PIECE_BYTES = 1 << 23


@dataclass(frozen=True)
class Piece:
    """Attempts that follow each other: their rows, their steps, and how many steps each of them has.

    ``described``: whether each has a usable ``point.json``; where not, its row holds what was planned.
    """

    rows: pa.Table
    steps: pa.Table
    counts: tuple[int, ...]
    described: tuple[bool, ...]


def pieces_of(chosen: Sequence[tuple[Attempt, int]]) -> Iterator[list[Attempt]]:
    """Attempts, each with the bytes of its evidence, cut into pieces."""
    piece: list[Attempt] = []
    size = 0
    for attempt, more in chosen:
        if piece and (len(piece) == PIECE_ATTEMPTS or size + more > PIECE_BYTES):
            yield piece
            piece, size = [], 0
        piece.append(attempt)
        size += more
    if piece:
        yield piece


def read_pieces(name: str, planned: Planned, pieces: Sequence[list[Attempt]]) -> Iterator[Piece]:
    """Every piece read, in order; by several processes where there are many attempts and CPUs."""
    workers = min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    if sum(map(len, pieces)) < PARALLEL_FROM or workers < 2:
        for piece in pieces:
            yield read_piece(name, piece, planned)
        return
    # spawn: this process may have threads, which a forked one would find stopped in the middle of anything
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=gc.disable) as pool:
        ahead: deque[tuple[list[Attempt], Future[Piece]]] = deque()
        for piece in pieces:
            ahead.append((piece, pool.submit(read_piece, name, piece)))
            # what waits to be taken is bounded, however many pieces there are
            if len(ahead) > 3 * workers:
                yield _taken(name, planned, *ahead.popleft())
        while ahead:
            yield _taken(name, planned, *ahead.popleft())


def _taken(name: str, planned: Planned, attempts: list[Attempt], future: Future[Piece]) -> Piece:
    piece = future.result()
    # the plan is long, and few need it: it is not sent to other processes
    return piece if all(piece.described) else read_piece(name, attempts, planned)


def read_piece(name: str, attempts: Sequence[Attempt], planned: Planned | None = None) -> Piece:
    """Rows and steps of attempts of the campaign of this name."""
    rows, runs, counts, described = [], [], [], []
    for attempt in attempts:
        cells, run, measured = read_attempt(name, attempt, (planned or {}).get(attempt.point_id))
        rows.append(cells)
        runs.append(((attempt.point_id, attempt.repeat, attempt.attempt), run, measured))
        counts.append(sum(len(rank.steps) for rank in run.ranks))
        described.append(run.spec is not None)
    return Piece(rows_table(rows), table_of(runs), tuple(counts), tuple(described))


def read_attempt(
    name: str, attempt: Attempt, planned: PlannedPoint | None
) -> tuple[dict[str, Any], RunEvidence, Measurement | None]:
    """One attempt's row, its evidence and its measurement."""
    run = read_run(attempt.layout)
    state, reason = state_of(attempt, run.spec, run.gathered)
    cells: dict[str, Any] = {
        "campaign": name,
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
    return cells, run, measured


def _measured(run: RunEvidence, state: JobState) -> tuple[dict[str, Any], list[Finding], Measurement | None]:
    """Cells, findings and measurement of a run; one whose events hold nonsense must not cost the others their table."""
    try:
        return row.run_cells(run, state)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        text = f"{type(error).__name__}: {error}"
        advice = "Its events were written by another version or are damaged; look at them, or measure again."
        return {}, [findings.make("evidence_unreadable", advice, error=text)], None
