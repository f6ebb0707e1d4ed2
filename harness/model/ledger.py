"""The ledger's vocabulary: one JSON object a line in ``ledger.jsonl``, append-only, written by the login side.

Every record has ``record`` (its kind), ``unix_s``, and, but for ``note``, the key ``point_id``, ``repeat``,
``attempt``. Its last member, ``crc``, seals the line: see :func:`harness.files.sealed_line`; older ledgers have none.

``intent``     job_name, script: written and fsynced before the scheduler is asked; where the job has many attempts,
               group (its directory's name) and, in an array, index
``submitted``  job_id
``refused``    message: the scheduler said no; nothing was queued
``state``      state, native_state, exit_status, reason: an observation that changed the state, or evidence found
``note``       message; about, where it counts for later: ``text_only``, the scheduler's JSON has proved of no use

:func:`fold` turns these lines into the present state of each attempt; both the login and the analysis side use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.model.job import JobState, advance
from harness.model.names import NUMBER_LIMIT


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

    @property
    def lacks_intent(self) -> bool:
        """Whether the line that names the job of an attempt under way is not there, or is damaged."""
        return self.intended_unix_s is None and not self.state.ended


#: what an empty line of the file counts as: about no attempt, and no damage
NOTE: Mapping[str, Any] = {"record": "note"}
#: of attempts that the ledger does not know
NOTHING_KNOWN = AttemptStatus()


#: as many damaged lines are named by their numbers
_MOST_NAMED = 10
#: what comes of damaged lines for those who only look
NOT_SHOWN = "it is not shown here; `harness wait` looks for it, by its directory and its name"
#: and for those who submit, once they have looked
LOOKED_FOR = "it was looked for, by its directory and its name, and nothing is submitted twice"


def damage_text(path: object, damaged: Sequence[int], then: str) -> str:
    """That lines of the ledger at ``path`` are damaged, what that means, and what comes of it."""
    numbers = ", ".join(map(str, damaged[:_MOST_NAMED])) + (", …" if len(damaged) > _MOST_NAMED else "")
    lines = f"line {numbers} is" if len(damaged) == 1 else f"{len(damaged)} lines ({numbers}) are"
    return f"{path}: {lines} damaged and left out; a job that no other line tells of may be queued or running: {then}"


def fold(
    records: Iterable[Mapping[str, Any] | None], damaged: list[int] | None = None
) -> dict[AttemptKey, AttemptStatus]:
    """The state of every attempt after ``records`` in file order; records that make no sense are passed over.

    Args:
        records: None for a line that is no record.
        damaged: the places, from 1, of what was passed over are added to it; notes are about no attempt.
    """
    statuses: dict[AttemptKey, AttemptStatus] = {}
    for number, record in enumerate(records, 1):
        try:
            if record is None:
                raise ValueError("no record")
            key = _key_of(record)
            statuses[key] = apply(statuses.get(key), record)
        except (KeyError, ValueError, TypeError, OverflowError):
            if damaged is not None and (record is None or record.get("record") != "note"):
                damaged.append(number)
    return statuses


def _key_of(record: Mapping[str, Any]) -> AttemptKey:
    """The attempt that a record is about; a directory may be named after it and a table hold its numbers.

    Raises:
        KeyError, ValueError: where it says none, or none that can be.
    """
    point_id, repeat, attempt = record["point_id"], record["repeat"], record["attempt"]
    if type(repeat) is not int or not 0 <= repeat < NUMBER_LIMIT:  # no isinstance: true and false are integers, too
        raise ValueError(f"no repeat: {repeat!r}")
    if type(attempt) is not int or not 1 <= attempt < NUMBER_LIMIT:
        raise ValueError(f"no attempt: {attempt!r}")
    if type(point_id) is not str or not point_id.isalnum() or not point_id.isascii():
        raise ValueError(f"no point: {point_id!r}")
    return AttemptKey(point_id, repeat, attempt)


def apply(old: AttemptStatus | None, record: Mapping[str, Any]) -> AttemptStatus:
    """The status after one more record.

    Raises:
        KeyError, ValueError: where the record lacks a field or holds an unknown state.
    """
    status, when = old or NOTHING_KNOWN, float(record["unix_s"])
    kind = record["record"]
    if kind == "intent":
        if status.refused:
            return _intended(NOTHING_KNOWN, record, when)
        return status if status.intended_unix_s is not None else _intended(status, record, when)
    if kind == "submitted":
        state = advance(status.state, JobState.QUEUED)
        return _changed(status, state=state, job_id=_text(record["job_id"]), submitted_unix_s=when)
    if kind == "refused":
        message = _text(record["message"])
        return _changed(status, state=JobState.FAILED, refused=True, reason=message, ended_unix_s=when)
    if kind == "state":
        return _observe(status, record, when)
    raise ValueError(f"unknown kind of record {kind!r}")


def _changed(status: AttemptStatus, **changes: Any) -> AttemptStatus:
    """As ``dataclasses.replace``, in a quarter of its time: a ledger has some lines for each attempt."""
    changed = object.__new__(AttemptStatus)
    vars(changed).update(vars(status), **changes)
    return changed


def _text(value: Any) -> str:
    """Raises:
    ValueError: where JSON's escapes have put halves of characters into it, which no file of text can hold.
    """
    text = str(value)
    if not text.isascii():
        text.encode()
    return text


def _intended(status: AttemptStatus, record: Mapping[str, Any], when: float) -> AttemptStatus:
    """What is known already of an attempt stays: its first intent may have been on a line that is damaged."""
    index = record.get("index")
    return _changed(
        status,
        job_name=_text(record["job_name"]),
        group=_text(record.get("group") or ""),
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
        native_state=_text(record.get("native_state") or ""),
        exit_status=None if exit_status is None else int(exit_status),
        reason=_text(record.get("reason") or ""),
        started_unix_s=when if state is JobState.RUNNING else status.started_unix_s,
        ended_unix_s=when if state.ended else None,
    )
