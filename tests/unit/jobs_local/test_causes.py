"""Ends told apart, each with what to do next."""

from __future__ import annotations

from typing import Any

import pytest

from harness.jobs.causes import NEVER_BEGAN, NEVER_QUEUED, NEXT_STEPS, REQUEUED, UNTOLD, cause_of, next_step
from harness.jobs.schedulers import pbs, slurm, torque
from harness.jobs.schedulers.interface import Answer
from harness.jobs.watch import without_evidence
from harness.model.job import JobState, Observation
from harness.model.ledger import AttemptStatus

ENDS: list[tuple[str, JobState, dict[str, Any]]] = [
    ("", JobState.SUCCEEDED, {}),
    ("", JobState.QUEUED, {"reason": "Priority", "native_state": "PENDING"}),
    ("", JobState.RUNNING, {"reason": "its script has started"}),
    ("held", JobState.QUEUED, {"native_state": "H"}),
    ("held", JobState.QUEUED, {"native_state": "PENDING", "reason": "JobHeldUser"}),
    ("dependency", JobState.FAILED, {"reason": "can never run: DependencyNeverSatisfied"}),
    ("never_runnable", JobState.FAILED, {"reason": "can never run: PartitionConfig"}),
    ("never_runnable", JobState.FAILED, {"reason": "can never run: Can Never Run: Insufficient amount of ncpus"}),
    ("refused", JobState.FAILED, {"refused": True, "reason": "qsub: Unknown queue"}),
    ("walltime", JobState.TIMED_OUT, {"reason": "stopped at its walltime of 600 s"}),
    ("deadline", JobState.FAILED, {"reason": "the scheduler says DEADLINE; there is no exit record"}),
    ("out_of_memory", JobState.FAILED, {"reason": "exit code 137; the scheduler says OUT_OF_MEMORY"}),
    ("out_of_memory", JobState.FAILED, {"native_state": "OUT_OF_MEMORY", "reason": "the scheduler says OUT_OF_MEMORY"}),
    ("node_failure", JobState.FAILED, {"reason": "stopped after 3 s; the scheduler says NODE_FAIL"}),
    ("preempted", JobState.FAILED, {"reason": "stopped after 3 s; the scheduler says PREEMPTED"}),
    ("cancelled", JobState.CANCELLED, {"reason": "told to stop after 3 s"}),
    ("not_begun", JobState.LOST, {"reason": NEVER_BEGAN}),
    ("not_begun", JobState.LOST, {"reason": NEVER_QUEUED}),
    ("unknown_job", JobState.LOST, {"reason": f"{UNTOLD}: x/job.sh is not there"}),
    ("lost", JobState.LOST, {"reason": "the scheduler does not know the job any more, and it left no exit record"}),
    ("setup", JobState.FAILED, {"reason": "setup failed: module load failed: openmpi"}),
    ("killed", JobState.FAILED, {"reason": "exit code 137", "exit_status": 137}),
    ("failed", JobState.FAILED, {"reason": "exit code 1", "exit_status": 1}),
    ("out_of_memory", JobState.FAILED, {"reason": "exit code 1; the scheduler says FAILED: oom-kill event"}),
    ("setup", JobState.FAILED, {"reason": "setup failed: no mpirun on bloom12: see modules"}),
    ("setup", JobState.FAILED, {"reason": "setup failed: conda activate failed: /home/broomfield/env"}),
    (
        "failed",
        JobState.FAILED,
        {"reason": "the scheduler says F; there is no exit record; Job run at noon on (room2)"},
    ),
    ("rerun", JobState.FAILED, {"reason": "stopped after 3 s; the scheduler says F with exit status 93"}),
    ("rerun", JobState.FAILED, {"reason": f"stopped after 3 s; the scheduler says PENDING: {REQUEUED} (Priority)"}),
    ("failed", JobState.FAILED, {"reason": "exit code 93", "exit_status": 93}),
    ("unwritable", JobState.FAILED, {"reason": "the scheduler says F with exit status 94; there is no exit record"}),
    ("failed", JobState.FAILED, {"reason": "exit code 94; the scheduler says FAILED", "exit_status": 94}),
]


@pytest.mark.parametrize(("cause", "state", "facts"), ENDS)
def test_causes(cause: str, state: JobState, facts: dict[str, Any]) -> None:
    status = AttemptStatus(state=state, **facts)
    assert cause_of(status) == cause
    assert bool(next_step(status, "slurm", "c")) == bool(cause)


def test_every_cause_can_be_told() -> None:
    assert {cause for cause, _, _ in ENDS} - {""} == NEXT_STEPS.keys()


@pytest.mark.parametrize(("scheduler", "command"), [("slurm", "scontrol release 17"), ("pbs", "qrls 17")])
def test_a_held_job_is_let_go_in_the_schedulers_words(scheduler: str, command: str) -> None:
    status = AttemptStatus(state=JobState.QUEUED, native_state="H", job_id="17")
    assert next_step(status, scheduler, "c").endswith(command)


@pytest.mark.parametrize(
    ("scheduler", "element", "array"),
    [("slurm", "4_17", "4"), ("pbs", "4[17].pbs_srv.site", "4[].pbs_srv.site"), ("torque", "4[17].srv", "4[].srv")],
)
def test_an_array_is_let_go_as_a_whole(scheduler: str, element: str, array: str) -> None:
    status = AttemptStatus(state=JobState.QUEUED, reason="JobHeldUser", job_id=element, index=17)
    assert next_step(status, scheduler, "c").endswith(f" {array}")


def test_an_element_that_the_server_ran_again_is_told_by_its_claim() -> None:
    observation = pbs.observe("7[3].srv", {"job_state": "X", "Exit_status": "93", "substate": "93"})
    assert observation is not None
    verdict = without_evidence(observation)
    status = AttemptStatus(state=verdict.state, reason=verdict.reason, exit_status=verdict.exit_status)
    assert cause_of(status) == "rerun"


def test_pbs_memory_kill_without_a_comment() -> None:
    observation = pbs.observe("7.srv", {"job_state": "F", "Exit_status": "-27", "substate": "93"})
    assert observation is not None
    verdict = without_evidence(observation)
    assert cause_of(AttemptStatus(state=verdict.state, reason=verdict.reason)) == "out_of_memory"


def test_a_job_that_ended_without_evidence_is_described() -> None:
    seen = Observation(job_id="7", state=JobState.FAILED, native_state="NODE_FAIL", reason="node3 is down")
    assert without_evidence(seen).reason == "the scheduler says NODE_FAIL; there is no exit record; node3 is down"


def cause_without_evidence(observation: Observation | None) -> str:
    assert observation is not None
    verdict = without_evidence(observation)
    return cause_of(AttemptStatus(state=verdict.state, reason=verdict.reason, exit_status=verdict.exit_status))


@pytest.mark.parametrize(
    ("status", "cause"),
    [("-9", "unwritable"), ("-10", "out_of_memory"), ("-12", "failed"), ("94", "unwritable"), ("137", "killed")],
)
def test_what_torques_own_exit_statuses_say(status: str, cause: str) -> None:
    record = {"job_state": "C", "exit_status": status, "comment": "Job started on Sun Nov 22 at 07:00"}
    assert cause_without_evidence(torque.observe("7.srv", record)) == cause


def test_a_log_that_pbs_could_not_open() -> None:
    record = {"job_state": "F", "Exit_status": "-9", "substate": "93", "comment": "Job run at noon on (n1) and failed"}
    assert cause_without_evidence(pbs.observe("7.srv", record)) == "unwritable"


def test_a_log_that_slurm_could_not_open() -> None:
    answers = [Answer(0, "", ""), Answer(0, "7|FAILED|0:53|None|h1\n8|FAILED|53:0|None|h2\n", "")]
    seen = slurm.parse_status(["7", "8"], answers)
    assert [cause_without_evidence(seen[job_id]) for job_id in ("7", "8")] == ["unwritable", "failed"]
