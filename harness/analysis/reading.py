"""Attempts → rows and steps: what every process that reads a piece of a campaign does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
