"""Attempts → rows and steps: what every process that reads a piece of a campaign does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.analysis import findings, row
from harness.analysis.campaigns import Attempt, state_of
from harness.analysis.evidence import RunEvidence, read_run
from harness.analysis.findings import Finding
from harness.analysis.measure import Measurement
from harness.analysis.pieces import Piece, Planned
from harness.analysis.rows_table import rows_table
from harness.analysis.steps_table import table_of
from harness.model.campaign import PlannedPoint
from harness.model.job import JobState


def read_piece(name: str, attempts: Sequence[Attempt], planned: Planned | None = None) -> Piece:
    """Rows and steps of attempts of the campaign of this name."""
    runs = [read_run(attempt.layout) for attempt in attempts]
    rows, steps = [], []
    # of numbers without sense numpy makes NaN and infinity, whose cells stay empty; it would print a warning, too
    with np.errstate(all="ignore"):
        for attempt, run, known in zip(attempts, runs, _together(runs), strict=True):
            cells, measured = _cells(name, attempt, run, (planned or {}).get(attempt.point_id), known)
            rows.append(cells)
            steps.append(((attempt.point_id, attempt.repeat, attempt.attempt), run, measured))
    counts = tuple(sum(len(rank.steps) for rank in run.ranks) for run in runs)
    return Piece(rows_table(rows), table_of(steps), counts, tuple(run.spec is not None for run in runs))


def _together(runs: Sequence[RunEvidence]) -> Sequence[Sequence[Measurement | None]]:
    """The measurement of each; nothing where one of the runs holds nonsense: then each is measured alone."""
    try:
        return [[measured] for measured in row.measurements(runs)]
    except _NONSENSE:
        return [()] * len(runs)


#: What reading events raises that are not what their vocabulary says.
_NONSENSE = (TypeError, ValueError, KeyError, AttributeError, OverflowError)


def _cells(
    name: str, attempt: Attempt, run: RunEvidence, planned: PlannedPoint | None, known: Sequence[Measurement | None]
) -> tuple[dict[str, Any], Measurement | None]:
    """One attempt's row and its measurement."""
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
    measured_cells, found, measured = _measured(run, state, known)
    cells |= {name: value for name, value in measured_cells.items() if value is not None}
    cells["findings"] = findings.to_json(found)
    return cells, measured


def _measured(
    run: RunEvidence, state: JobState, known: Sequence[Measurement | None]
) -> tuple[dict[str, Any], list[Finding], Measurement | None]:
    """Cells, findings and measurement of a run; one whose events hold nonsense must not cost the others their table."""
    try:
        return row.run_cells(run, state, known)
    except _NONSENSE as error:
        text = f"{type(error).__name__}: {error}"
        advice = "Its events were written by another version or are damaged; look at them, or measure again."
        return {}, [findings.make("evidence_unreadable", advice, error=text)], None
