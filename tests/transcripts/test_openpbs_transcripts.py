"""Every recorded answer of a real OpenPBS is understood as the table beside it says."""

from __future__ import annotations

import base64
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.jobs.schedulers import pbs
from harness.jobs.schedulers.interface import Answer

HERE = Path(__file__).parent
EXPECTED: dict[str, Any] = yaml.safe_load((HERE / "openpbs_expected.yml").read_text())
# what waiting may cure: a user's limit, a queue that is not enabled, a server that does not answer
RETRYABLE = {"qsub_limit_3_rejected", "qsub_queue_disabled", "qsub_server_down"}


@lru_cache
def transcripts() -> dict[str, dict[str, Any]]:
    lines = (HERE / "openpbs.jsonl").read_text(encoding="utf-8").splitlines()
    return {record["name"]: record for record in map(json.loads, lines)}


def answer_of(name: str) -> Answer:
    record = transcripts()[name]
    stdout = record["stdout"]
    if "stdout_b64" in record:
        stdout = base64.b64decode(record["stdout_b64"]).decode(errors="replace")
    return Answer(record["returncode"], stdout, record["stderr"])


def test_the_table_speaks_of_every_transcript_once() -> None:
    named = [name for part in EXPECTED.values() for name in part]
    assert sorted(named) == sorted(transcripts())
    assert len(named) == 267


@pytest.mark.parametrize("name", EXPECTED["accepted"])
def test_accepted_submissions(name: str) -> None:
    submitted = pbs.parse_submit(answer_of(name))
    assert (submitted.outcome, submitted.job_id) == ("accepted", EXPECTED["accepted"][name])


@pytest.mark.parametrize("name", EXPECTED["refused"])
def test_refused_submissions(name: str) -> None:
    submitted = pbs.parse_submit(answer_of(name))
    assert submitted.outcome == "refused"
    assert EXPECTED["refused"][name] in submitted.message
    assert "usage:" not in submitted.message
    assert submitted.retryable is (name in RETRYABLE)


def read(ids: list[str], name: str) -> dict[str, str]:
    """What the answer tells of these jobs; in JSON, only those that it has a record of."""
    if "json" not in transcripts()[name]["argv"]:
        return {job_id: in_words(seen) for job_id, seen in pbs.parse_status(ids, [answer_of(name)]).items()}
    assert pbs.FIRST_QUESTION is not None
    answer = pbs.FIRST_QUESTION.parse(ids, answer_of(name))
    assert not answer.broken
    assert answer.is_away is ("cannot connect" in answer_of(name).stderr)
    return {job_id: in_words(seen) for job_id, seen in answer.found.items()}


def expected_of(name: str) -> dict[str, str]:
    without_record = ("unknown", "finished") if "json" in transcripts()[name]["argv"] else ()
    return {job_id: state for job_id, state in EXPECTED["status"][name].items() if state not in without_record}


@pytest.mark.parametrize("name", EXPECTED["status"])
def test_status(name: str) -> None:
    expected = expected_of(name)
    ids = expected or [word for word in transcripts()[name]["argv"][1:] if re.match(r"\d", word)] or ["1.pbshost"]
    assert read(list(ids), name) == expected


@pytest.mark.parametrize("name", EXPECTED["broken"])
def test_json_that_is_none_is_refused_with_its_reason(name: str) -> None:
    assert pbs.FIRST_QUESTION is not None
    answer = pbs.FIRST_QUESTION.parse(EXPECTED["broken"][name]["jobs"], answer_of(name))
    assert answer.found == {}
    assert EXPECTED["broken"][name]["why"] in answer.broken


@pytest.mark.parametrize("name", [name for name in EXPECTED["status"] if len(expected_of(name)) == 1])
def test_ids_without_the_server_name_find_the_same_job(name: str) -> None:
    ((job_id, state),) = expected_of(name).items()
    bare = job_id.partition(".")[0]
    assert read([bare], name) == {bare: state}


@pytest.mark.parametrize("name", EXPECTED["other"])
def test_answers_to_other_commands_teach_nothing(name: str) -> None:
    assert pbs.parse_status(["94.pbshost", "107.pbshost"], [answer_of(name)]) == {}


def in_words(observation: Any) -> str:
    if observation.state is None:
        return str(observation.native_state)
    words = [observation.state.value]
    words += [str(observation.exit_status)] if observation.exit_status is not None else []
    words += ["never"] if observation.never_runnable else []
    return " ".join(words)
