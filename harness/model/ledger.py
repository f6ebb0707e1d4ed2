"""The ledger's vocabulary: one JSON object a line in ``ledger.jsonl``, append-only, written by the login side.

Every record has ``record`` (its kind), ``unix_s``, and, but for ``note``, the key ``point_id``, ``repeat``,
``attempt``.

``intent``     job_name, script: written and fsynced before the scheduler is asked; where the job has many attempts,
               group (its directory's name) and, in an array, index
``submitted``  job_id
``refused``    message: the scheduler said no; nothing was queued
``state``      state, native_state, exit_status, reason: an observation that changed the state, or evidence found
``note``       message; about, where it counts for later: ``text_only``, the scheduler's JSON has proved of no use

:func:`fold` turns these lines into the present state of each attempt; both the login and the analysis side use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.model.job import JobState, advance


class AttemptKey(NamedTuple):
    """One try at one repeat of one point."""

    point_id: str
    repeat: int
    attempt: int


@dataclass(frozen=True)
class AttemptStatus:
    """What the ledger knows of an attempt. Times are seconds since 1970, None where it did not happen.

    ``job_id`` is empty while the scheduler's answer is not known. ``refused`` means that the scheduler said no and
    queued nothing: the same attempt may be submitted again, by a new intent.

    ``group`` names the array or pack that the attempt was submitted in, empty where it has a job of its own. In an
    array ``index`` is its place, and ``job_id`` its element's own; the attempts of a pack share one ``job_id``.
    """

    state: JobState = JobState.INTENDED
    job_name: str = ""
    group: str = ""
    index: int | None = None
    job_id: str = ""
    native_state: str = ""
    exit_status: int | None = None
    reason: str = ""
    refused: bool = False
    intended_unix_s: float | None = None
    submitted_unix_s: float | None = None
    started_unix_s: float | None = None
    ended_unix_s: float | None = None


_UNKNOWN = AttemptStatus()


def fold(records: Iterable[Mapping[str, Any]]) -> dict[AttemptKey, AttemptStatus]:
    """The state of every attempt after ``records`` in file order; records that make no sense are passed over."""
    statuses: dict[AttemptKey, AttemptStatus] = {}
    for record in records:
        try:
            key = AttemptKey(str(record["point_id"]), int(record["repeat"]), int(record["attempt"]))
            statuses[key] = apply(statuses.get(key), record)
        except (KeyError, ValueError, TypeError):
            continue  # a note, or a line damaged in a way that still is JSON
    return statuses


def apply(old: AttemptStatus | None, record: Mapping[str, Any]) -> AttemptStatus:
    """The status after one more record.

    Raises:
        KeyError, ValueError: where the record lacks a field or holds an unknown state.
    """
    status, when = old or _UNKNOWN, float(record["unix_s"])
    kind = record["record"]
    if kind == "intent":
        if status.intended_unix_s is not None and not status.refused:
            return status
        return _intended(record, when)
    if kind == "submitted":
        state = advance(status.state, JobState.QUEUED)
        return _changed(status, state=state, job_id=str(record["job_id"]), submitted_unix_s=when)
    if kind == "refused":
        message = str(record["message"])
        return _changed(status, state=JobState.FAILED, refused=True, reason=message, ended_unix_s=when)
    if kind == "state":
        return _observe(status, record, when)
    raise ValueError(f"unknown kind of record {kind!r}")


def _changed(status: AttemptStatus, **changes: Any) -> AttemptStatus:
    """As ``dataclasses.replace``, in a quarter of its time: a ledger has some lines for each attempt."""
    changed = object.__new__(AttemptStatus)
    vars(changed).update(vars(status), **changes)
    return changed


def _intended(record: Mapping[str, Any], when: float) -> AttemptStatus:
    index = record.get("index")
    return _changed(
        _UNKNOWN,
        job_name=str(record["job_name"]),
        group=str(record.get("group") or ""),
        index=None if index is None else int(index),
        intended_unix_s=when,
    )


def _observe(status: AttemptStatus, record: Mapping[str, Any], when: float) -> AttemptStatus:
    state = advance(status.state, JobState(record["state"]))
    if state is status.state:
        return status
    exit_status = record.get("exit_status")
    return _changed(
        status,
        state=state,
        native_state=str(record.get("native_state") or ""),
        exit_status=None if exit_status is None else int(exit_status),
        reason=str(record.get("reason") or ""),
        started_unix_s=when if state is JobState.RUNNING else status.started_unix_s,
        ended_unix_s=when if state.ended else None,
    )
