"""The ledger of a campaign: what was asked of the scheduler and what became of it, durable line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.files import Appender, read_json_lines, read_lines, sealed_line
from harness.jobs.group_traces import is_group_name
from harness.model.job import JobState
from harness.model.ledger import NOTE, AttemptKey, AttemptStatus, apply, fold

#: what a note may be about, so that it counts for whoever comes next: the scheduler's JSON is of no use
TEXT_ONLY = "text_only"


def read_statuses(path: Path, damaged: list[int] | None = None) -> dict[AttemptKey, AttemptStatus]:
    """The present state of every attempt, for those who only look.

    Args:
        damaged: where given, the numbers of lines are added that are no record of an attempt.
    """
    return fold(_records(path), damaged)


def _records(path: Path) -> Iterator[Mapping[str, Any] | None]:
    """The record of each line, None where it is damaged."""
    for line, record in read_lines(path):
        yield record if record is not None or line.strip() else NOTE


def is_text_only(path: Path) -> bool:
    """Whether the scheduler's JSON was found to be of no use to this campaign."""
    return _is_text_only(read_json_lines(path))


def _is_text_only(records: Iterable[Mapping[str, Any]]) -> bool:
    return any(record.get("about") == TEXT_ONLY for record in records)


class Ledger:
    """Writes records and keeps their fold. One process at a time: see :mod:`harness.jobs.lock`.

    Every method returns when its record is on disk.
    """

    def __init__(self, path: Path, now: Callable[[], float]):
        self._now = now
        records, damaged = list(_records(path)), list[int]()
        self.statuses = fold(records, damaged)
        #: numbers of lines that were no record of an attempt
        self.damaged = tuple(damaged)
        self.is_text_only = _is_text_only(record for record in records if record is not None)
        #: the highest attempt of each task, by point and repeat
        self.last: dict[tuple[str, int], int] = {}
        #: the highest number of a group
        self.last_group = 0
        self._note_last(self.statuses)
        self._appender = Appender(path, sealed_line)

    def intent(
        self, keys: Iterable[AttemptKey], job_name: str, script: str, group: str = "", is_array: bool = False
    ) -> None:
        """The attempts of one job, in their order: one alone, or those of a group."""
        fields = {"job_name": job_name, "script": script, **({"group": group} if group else {})}
        self._write_all(
            [(key, "intent", {**fields, "index": index} if is_array else fields) for index, key in enumerate(keys)]
        )

    def submitted(self, job_ids: Mapping[AttemptKey, str]) -> None:
        self._write_all([(key, "submitted", {"job_id": job_id}) for key, job_id in job_ids.items()])

    def refused(self, keys: Iterable[AttemptKey], message: str) -> None:
        self._write_all([(key, "refused", {"message": message}) for key in keys])

    def state(
        self,
        key: AttemptKey,
        state: JobState,
        reason: str = "",
        exit_status: int | None = None,
        native_state: str = "",
    ) -> None:
        """An observation; it is written only where it moves the attempt on."""
        details = {"native_state": native_state, "exit_status": exit_status, "reason": reason}
        self._write_all([(key, "state", {"state": state.value, **details})])

    def note(self, message: str, about: str = "") -> None:
        fields = {"message": message, **({"about": about} if about else {})}
        self._appender.append({"record": "note", "unix_s": self._now(), **fields})

    def ask_as_text(self, why: str) -> None:
        """Note that status is asked for as text from here on, by every harness that drives this campaign."""
        self.note(f"{why}; status is asked for as text from here on", TEXT_ONLY)

    def _write_all(self, changes: Sequence[tuple[AttemptKey, str, Mapping[str, Any]]]) -> None:
        """Records of different attempts, made durable together; those that change nothing are left out."""
        records, news = [], dict[AttemptKey, AttemptStatus]()
        for key, kind, fields in changes:
            record = {"record": kind, "unix_s": self._now(), **key._asdict(), **fields}
            old = self.statuses.get(key)
            new = apply(old, record)
            if new != old:
                records.append(record)
                news[key] = new
        if records:
            self._appender.append(*records)
            self.statuses.update(news)
            self._note_last(news)

    def _note_last(self, statuses: Mapping[AttemptKey, AttemptStatus]) -> None:
        for (point_id, repeat, attempt), status in statuses.items():
            self.last[point_id, repeat] = max(attempt, self.last.get((point_id, repeat), 0))
            if status.group and is_group_name(status.group):
                self.last_group = max(self.last_group, int(status.group[1:]))

    def close(self) -> None:
        self._appender.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_exc: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()
