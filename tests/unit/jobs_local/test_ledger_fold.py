"""The ledger: what its lines mean, and that a crash at any byte loses at most the line being written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.jobs.ledger import Ledger, read_statuses
from harness.model.job import JobState
from harness.model.ledger import AttemptKey, fold

KEY = AttemptKey("0123456789abcdef", 0, 1)
WHO = KEY._asdict()


def line(kind: str, unix_s: float = 1.0, **fields: object) -> dict[str, object]:
    return {"record": kind, "unix_s": unix_s, **WHO, **fields}


INTENT = line("intent", 1.0, job_name="habc", script="/s/job.sh")
SUBMITTED = line("submitted", 2.0, job_id="17.server")
RUNNING = line("state", 3.0, state="RUNNING")
SUCCEEDED = line("state", 4.0, state="SUCCEEDED", exit_status=0)


def test_a_job_goes_through_its_states() -> None:
    status = fold([INTENT, SUBMITTED, RUNNING, SUCCEEDED])[KEY]
    assert status.state is JobState.SUCCEEDED
    assert (status.job_name, status.job_id, status.exit_status) == ("habc", "17.server", 0)
    times = (status.intended_unix_s, status.submitted_unix_s, status.started_unix_s, status.ended_unix_s)
    assert times == (1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize(
    ("records", "state"),
    [
        ([INTENT], "INTENDED"),
        ([INTENT, SUBMITTED], "QUEUED"),
        ([INTENT, RUNNING, SUBMITTED], "RUNNING"),  # seen running before the answer was recorded
        ([INTENT, SUBMITTED, SUCCEEDED, RUNNING], "SUCCEEDED"),  # a late observation
        ([INTENT, SUBMITTED, line("state", state="FAILED"), SUCCEEDED], "FAILED"),  # an ended state stays
        ([INTENT, SUBMITTED, line("state", state="LOST"), SUCCEEDED], "SUCCEEDED"),  # but for LOST
        ([INTENT, SUBMITTED, line("state", state="LOST"), RUNNING], "LOST"),
        ([INTENT, line("refused", message="no such queue")], "FAILED"),
        ([INTENT, line("refused", message="busy"), INTENT], "INTENDED"),  # the same attempt, offered again
        ([INTENT, SUBMITTED, INTENT], "QUEUED"),  # a repeated intent takes nothing back
    ],
)
def test_no_observation_moves_a_job_back(records: list[dict[str, object]], state: str) -> None:
    assert fold(records)[KEY].state.value == state


@pytest.mark.parametrize(
    "nonsense",
    [
        {"record": "note", "unix_s": 1, "message": "x"},
        {"record": "state", "unix_s": 1, **WHO, "state": "DANCING"},
        {"record": "surprise", "unix_s": 1, **WHO},
        {"record": "intent", **WHO},
        {"unix_s": 1, **WHO},
        {"record": "state", "unix_s": "yesterday", **WHO, "state": "RUNNING"},
        {"record": "state", "unix_s": 1, **WHO, "state": "RUNNING", "reason": "\ud800"},
        {"record": "state", "unix_s": 1, **WHO, "state": "RUNNING", "exit_status": float("inf")},
        {"record": "state", "unix_s": 10**400, **WHO, "state": "RUNNING"},
        {"record": "intent", "unix_s": 1, **WHO, "job_name": "h", "attempt": True},
        {"record": "intent", "unix_s": 1, **WHO, "job_name": "h", "repeat": -1},
        {"record": "intent", "unix_s": 1, **WHO, "job_name": "h", "point_id": "../.."},
        {"record": "intent", "unix_s": 1, **WHO, "job_name": "h", "point_id": "\0"},
        {"record": "intent", "unix_s": 1, **WHO, "job_name": "h", "point_id": ["a"]},
    ],
)
def test_records_that_make_no_sense_change_nothing(nonsense: dict[str, object]) -> None:
    damaged: list[int] = []
    assert fold([INTENT, nonsense, SUBMITTED], damaged) == fold([INTENT, SUBMITTED])
    assert damaged == ([] if nonsense.get("record") == "note" else [2])


def test_a_cut_at_any_byte_loses_only_the_line_it_cuts(tmp_path: Path) -> None:
    records = [INTENT, SUBMITTED, RUNNING, SUCCEEDED]
    lines = [json.dumps(record).encode() + b"\n" for record in records]
    whole, path = b"".join(lines), tmp_path / "ledger.jsonl"
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        # the line end itself is no part of a record
        complete = sum(sum(map(len, lines[: n + 1])) - 1 <= cut for n in range(len(lines)))
        assert read_statuses(path) == fold(records[:complete]), cut
        with Ledger(path, now=lambda: 9.0) as ledger:
            ledger.state(KEY, JobState.LOST, "late")
        expected = [*records[:complete], line("state", 9.0, state="LOST", reason="late")]
        assert read_statuses(path) == fold(expected), cut


def test_an_observation_that_moves_nothing_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path, now=lambda: 5.0) as ledger:
        ledger.intent([KEY], "habc", "/s/job.sh")
        ledger.submitted({KEY: "17"})
        ledger.state(KEY, JobState.RUNNING)
        ledger.state(KEY, JobState.RUNNING)
        ledger.state(KEY, JobState.QUEUED)
    assert [json.loads(text)["record"] for text in path.read_text().splitlines()] == ["intent", "submitted", "state"]


def test_the_folded_state_in_memory_is_the_one_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path, now=lambda: 5.0) as ledger:
        ledger.intent([KEY], "habc", "/s/job.sh")
        ledger.refused([KEY], "queue is full")
        ledger.intent([KEY], "habc", "/s/job.sh")
        ledger.submitted({KEY: "17"})
        ledger.state(KEY, JobState.TIMED_OUT, "walltime", exit_status=143)
        assert read_statuses(path) == ledger.statuses
