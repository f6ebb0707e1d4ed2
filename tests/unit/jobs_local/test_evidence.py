"""Absence is never success: what is judged from the traces of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.layout import AttemptLayout
from harness.model.evidence import TAIL_BYTES, Evidence, gather, judge
from harness.model.job import ExitRecord, JobState


def exit_record(code: int = 0, cause: str = "exit", lasted_s: float = 10.0, message: str = "") -> ExitRecord:
    return ExitRecord.model_validate(
        {
            "code": code,
            "cause": cause,
            "started_unix_s": 100.0,
            "ended_unix_s": 100.0 + lasted_s,
            "host": "n1",
            "message": message,
        }
    )


@pytest.mark.parametrize(
    ("record", "run_ends", "state", "reason"),
    [
        (exit_record(), (True,), "SUCCEEDED", ""),
        (exit_record(), (True, True, True), "SUCCEEDED", ""),
        (exit_record(), (None,), "FAILED", "exit code 0, but rank 0 of 1 never reported its end"),
        (exit_record(), (True, None), "FAILED", "exit code 0, but rank 1 of 2 never reported its end"),
        (exit_record(), (False, True), "FAILED", "exit code 0, but rank 0 of 2 reported failure"),
        (exit_record(3), (True,), "FAILED", "exit code 3"),
        (exit_record(137, message="killed"), (None,), "FAILED", "exit code 137: killed"),
        (exit_record(1, "setup", message="staging failed"), (None,), "FAILED", "setup failed: staging failed"),
        (exit_record(143, "term", 10), (None,), "CANCELLED", "told to stop after 10 s"),
        (exit_record(143, "term", 60), (None,), "TIMED_OUT", "stopped at its walltime of 60 s"),
        (exit_record(0, "term", 10), (True,), "CANCELLED", "told to stop after 10 s"),
    ],
)
def test_verdicts(record: ExitRecord, run_ends: tuple[bool | None, ...], state: str, reason: str) -> None:
    verdict = judge(Evidence(record, run_ends), walltime_s=60)
    assert verdict is not None
    assert (verdict.state.value, verdict.reason, verdict.exit_status) == (state, reason, record.code)


def test_the_scheduler_knows_better_why_a_job_was_stopped() -> None:
    early, late = (Evidence(exit_record(143, "term", lasted_s), (None,)) for lasted_s in (10, 61))
    assert judge(early, 60, JobState.TIMED_OUT).state is JobState.TIMED_OUT  # type: ignore[union-attr]
    assert judge(late, 60, JobState.CANCELLED).state is JobState.CANCELLED  # type: ignore[union-attr]


@pytest.mark.parametrize("code", [0, 1, 143, 250])
def test_a_launcher_may_be_ended_before_its_script_hears_of_it(code: int) -> None:
    """Slurm signals every process of a job; mpirun then was seen to return 0 and 250."""
    killed = Evidence(exit_record(code, "exit", 10), (None,))
    told = {state: judge(killed, 60, state) for state in (JobState.CANCELLED, JobState.TIMED_OUT, JobState.FAILED)}
    assert {state: verdict.state for state, verdict in told.items() if verdict} == {state: state for state in told}


def test_a_job_stopped_by_a_failing_node_has_failed() -> None:
    verdict = judge(Evidence(exit_record(143, "term", 10), (None,)), 60, JobState.FAILED)
    assert verdict is not None
    assert (verdict.state, verdict.reason, verdict.from_outside) == (JobState.FAILED, "stopped after 10 s", True)


def test_a_whole_run_is_a_success_whatever_the_scheduler_says() -> None:
    whole = Evidence(exit_record(0, "exit", 10), (True, True))
    assert judge(whole, 60, JobState.CANCELLED).state is JobState.SUCCEEDED  # type: ignore[union-attr]


def test_no_exit_record_no_verdict() -> None:
    assert judge(Evidence(None, (True,)), 60, JobState.SUCCEEDED) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"code": 0}', '{"code": 0, "cause": "magic"}', "\xff"])
def test_a_damaged_exit_record_is_none(text: str, tmp_path: Path) -> None:
    paths = AttemptLayout(tmp_path)
    paths.exit.write_text(text, encoding="latin-1")
    paths.events(0).write_text('{"event":"run_end","ok":true}\n')
    assert gather(paths, 1) == Evidence(None, (None,))


def test_the_run_end_is_found_at_the_end_of_a_long_file(tmp_path: Path) -> None:
    paths = AttemptLayout(tmp_path)
    paths.exit.write_text(exit_record().model_dump_json())
    filler = json.dumps({"event": "loss", "step": 1, "value": 0.5}) + "\n"
    paths.events(0).write_text(filler * (2 * TAIL_BYTES // len(filler)) + '{"event":"run_end","ok":true}\n')
    paths.events(1).write_text(filler + '{"event":"run_end","ok":true}')  # its line end was cut off
    paths.events(2).write_text(filler + '{"event":"run_end","ok":tr')
    assert gather(paths, 4).run_ends == (True, True, None, None)
