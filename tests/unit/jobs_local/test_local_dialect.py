"""The local engine's command line from both ends: what is written is what is read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.errors import UserError
from harness.jobs.engine import parse_request
from harness.jobs.schedulers import local
from harness.jobs.schedulers.interface import Answer, ArrayRange
from harness.model.cluster import Cluster, Directives, NodeType, Storage
from harness.model.job import JobState, Placement

HOSTILE = ["/a b/job", "/it's/$(touch pwned)/`x`", '/"quoted"/\\n', "/new\nline/#LOCAL cores=99", "/ünï/日本", "/-rf"]


def cluster(exclusive: bool = False) -> Cluster:
    return Cluster(
        name="here",
        scheduler="local",
        node=NodeType(cores_per_socket=2),
        storage={"hpctmp": Storage(path="/data")},
        directives=Directives(exclusive=exclusive),
    )


def placement(**fields: Any) -> Placement:
    given = {"nodes": 1, "ranks_per_node": 1, "cores_per_node": 2, "walltime_s": 60, "data_path": "/d", **fields}
    return Placement(cluster="here", **given)


@pytest.mark.parametrize("path", HOSTILE)
@pytest.mark.parametrize("exclusive", [True, False])
def test_what_the_directives_say_is_what_the_engine_reads(path: str, exclusive: bool) -> None:
    lines = local.directives(cluster(exclusive), placement(memory_bytes=1 << 30), "habc", path)
    script = "\n".join(["#!/bin/bash", *(f"{local.PREFIX} {line}" for line in lines), "", "true", "#LOCAL cores=7"])
    request = parse_request(script, "/s/job.sh", "habc")
    assert (request.name, request.cores, request.walltime_s, request.memory_bytes) == ("habc", 2, 60, 1 << 30)
    assert (request.output, request.exclusive) == (path, exclusive)


def test_the_whole_set_of_directives() -> None:
    lines = local.directives(cluster(True), placement(), "habc", "/o")
    assert lines == ['name="habc"', "cores=2", "walltime_s=60", "exclusive=true", 'output="/o"']


def test_arrays_are_refused() -> None:
    with pytest.raises(UserError, match="no job arrays"):
        local.directives(cluster(), placement(), "habc", "/o", ArrayRange(3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#LOCAL cores=two", "job.sh:1: '#LOCAL cores=two' is no directive"),
        ("#LOCAL cores=1", "walltime_s"),
        ("#LOCAL cores=1\n#LOCAL walltime_s=5\n#LOCAL colour=1", "colour"),
    ],
)
def test_bad_directives_are_named(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_request(text, "job.sh", "h")


def test_submission_answers() -> None:
    assert local.parse_submit(Answer(0, "1a@host\n", "")).job_id == "1a@host"
    refused = local.parse_submit(Answer(local.REFUSED, "", "9 cores are asked for\n"))
    assert (refused.outcome, refused.message) == ("refused", "9 cores are asked for")
    for unclear in (Answer(None, "", ""), Answer(1, "", "Traceback"), Answer(0, "", ""), Answer(-9, "", "")):
        assert local.parse_submit(unclear).outcome == "unknown"


def test_status_answers() -> None:
    records = [
        {"id": "1@h", "state": "RUNNING", "name": "ha", "exit_status": None, "reason": ""},
        {"id": "2@h", "state": "UNKNOWN"},
        {"id": "3@h", "state": "TIMED_OUT", "name": "hc", "exit_status": 143, "reason": "stopped at its walltime"},
    ]
    seen = local.parse_status(["1@h", "2@h", "3@h", "4@h"], [Answer(0, json.dumps(records), "")])
    assert {job: o.state for job, o in seen.items()} == {
        "1@h": JobState.RUNNING,
        "2@h": None,
        "3@h": JobState.TIMED_OUT,
    }
    assert (seen["3@h"].exit_status, seen["3@h"].job_name) == (143, "hc")


@pytest.mark.parametrize("answer", [Answer(None, "", ""), Answer(1, "[]", ""), Answer(0, "half [", "")])
def test_a_failed_question_teaches_nothing(answer: Answer) -> None:
    assert local.parse_status(["1@h"], [answer]) == {}
    assert local.parse_find(answer) is None


def test_ids_that_look_like_options_are_no_options() -> None:
    assert local.status_argv(["-x"])[0][-2:] == ["--", "-x"]
    assert local.cancel_argv([]) == [] == local.status_argv([])
    assert local.submit_argv("-x.sh", "h")[-2:] == ["--", "-x.sh"]
