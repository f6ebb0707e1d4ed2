"""What a run left behind, and the verdict on it: absence is never success.

A run SUCCEEDED only with ``exit.json`` code 0 and a ``run_end`` event with ``ok`` from every rank. Both the login
and the analysis side judge by :func:`judge`, so that a table never disagrees with the ledger.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple, Protocol

from harness.files import open_file, parse_line, read_file
from harness.model.job import ExitRecord, JobState

#: Bytes read from the end of an events file to find its run_end, which is the last record and short.
TAIL_BYTES = 64 * 1024


class EvidencePaths(Protocol):
    """The part of an attempt's directory that evidence lies in."""

    @property
    def exit(self) -> Path: ...

    def events(self, rank: int) -> Path: ...


class Evidence(NamedTuple):
    """``run_ends[rank]`` is the rank's own word: True finished, False failed, None no ``run_end`` at all."""

    exit: ExitRecord | None
    run_ends: tuple[bool | None, ...]


class Verdict(NamedTuple):
    """``from_outside``: the run was stopped, killed or cut short, and only the scheduler may know by what."""

    state: JobState
    reason: str = ""
    exit_status: int | None = None
    from_outside: bool = False


def gather(paths: EvidencePaths, ranks: int) -> Evidence:
    """Read an attempt's exit record and the end of each rank's events; unreadable is as good as absent."""
    record = read_exit(paths.exit)
    if record is None:
        return Evidence(None, (None,) * ranks)
    return Evidence(record, tuple(read_run_end(paths.events(rank)) for rank in range(ranks)))


def read_exit(path: Path) -> ExitRecord | None:
    """The exit record, or None where there is none or not a whole one."""
    try:
        return ExitRecord.model_validate(json.loads(read_file(path)), strict=False)
    except (OSError, ValueError, RecursionError):
        return None


def read_run_end(path: Path) -> bool | None:
    """``ok`` of the rank's ``run_end``, or None where the rank never wrote one."""
    for line in reversed(_tail(path).splitlines()):
        record = parse_line(line)
        if record is not None and record.get("event") == "run_end":
            return record.get("ok") is True
    return None


def _tail(path: Path) -> bytes:
    try:
        with os.fdopen(open_file(path), "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - TAIL_BYTES))
            return stream.read()
    except OSError:
        return b""


def judge(evidence: Evidence, walltime_s: int, told: JobState | None = None) -> Verdict | None:
    """The verdict on a run, or None while there is no exit record and nothing can be said.

    Args:
        walltime_s: the job's limit; tells a job stopped at its limit from one that was cancelled.
        told: the ended state that the scheduler reports, where it does.
    """
    record = evidence.exit
    if record is None:
        return None
    if record.cause == "term":
        return _stopped(record, walltime_s, told)
    if record.cause == "setup":
        text = record.message or "a step before the launcher failed"
        return Verdict(JobState.FAILED, f"setup failed: {text}", record.code)
    doubt = _doubt(evidence.run_ends)
    if not doubt and record.code == 0:
        return Verdict(JobState.SUCCEEDED, "", 0)
    if told in (JobState.CANCELLED, JobState.TIMED_OUT):
        # Slurm and PBS signal every process of a job: mpirun may be gone before the script hears of it.
        return _stopped(record, walltime_s, told)
    if record.code != 0:
        text = f": {record.message}" if record.message else ""
        return Verdict(JobState.FAILED, f"exit code {record.code}{text}", record.code, record.code > 128)
    # where a node fails, Open MPI's mpirun was seen to return 0
    return Verdict(JobState.FAILED, f"exit code 0, but {doubt}", 0, from_outside=True)


def _stopped(record: ExitRecord, walltime_s: int, told: JobState | None) -> Verdict:
    lasted_s = record.ended_unix_s - record.started_unix_s
    if told is JobState.TIMED_OUT or (told is None and lasted_s >= walltime_s):
        state, reason = JobState.TIMED_OUT, f"stopped at its walltime of {walltime_s} s"
    elif told is JobState.FAILED:  # a node failed, or the job was preempted
        state, reason = JobState.FAILED, f"stopped after {lasted_s:.0f} s"
    else:
        state, reason = JobState.CANCELLED, f"told to stop after {lasted_s:.0f} s"
    return Verdict(state, reason, record.code, from_outside=True)


def _doubt(run_ends: tuple[bool | None, ...]) -> str:
    missing = [str(rank) for rank, ok in enumerate(run_ends) if ok is None]
    failed = [str(rank) for rank, ok in enumerate(run_ends) if ok is False]
    of = f"of {len(run_ends)}"
    if missing:
        return f"rank {', '.join(missing)} {of} never reported its end"
    return f"rank {', '.join(failed)} {of} reported failure" if failed else ""
