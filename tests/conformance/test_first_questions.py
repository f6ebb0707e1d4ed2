"""Slurm's controller is asked first, its database only about jobs that the controller has forgotten."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from jobs_support import make_cluster

from harness.jobs.schedulers.interface import Answer
from harness.jobs.site import Site

AWAY = Answer(1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
INVALID = Answer(1, "", "slurm_load_jobs error: Invalid job id specified\n")
DISABLED = Answer(1, "", "Slurm accounting storage is disabled\n")


def row(job_id: str, state: str) -> str:
    return f"{job_id:<64}{state:<24}{0:<16}{'None':<64}{'name':<64}\n"


class Slurm:
    """Plays squeue, sacct and sacct --completion."""

    def __init__(self, squeue: Answer, sacct: Answer = DISABLED, completion: Answer = DISABLED):
        self.answers = {"squeue": squeue, "--allocations": sacct, "--completion": completion}
        self.asked: list[tuple[str, str]] = []

    def __call__(self, argv: Sequence[str]) -> Answer:
        kind = next(word for word in argv if word in self.answers)
        self.asked.append((kind, argv[-1].removeprefix("--jobs=")))
        return self.answers[kind]


def states(slurm: Slurm, *job_ids: str) -> dict[str, str]:
    seen = Site(make_cluster("slurm"), slurm).observe(job_ids)
    return {job_id: job.native_state for job_id, job in seen.items()}


def test_jobs_that_the_controller_knows_cost_the_database_nothing() -> None:
    slurm = Slurm(Answer(0, row("7", "RUNNING") + row("8", "FAILED") + row("9_0", "PENDING"), ""))
    assert states(slurm, "7", "8", "9_0") == {"7": "RUNNING", "8": "FAILED", "9_0": "PENDING"}
    assert slurm.asked == [("squeue", "7,8,9")]


def test_only_the_forgotten_are_asked_of_the_database() -> None:
    slurm = Slurm(Answer(0, row("7", "RUNNING"), ""), Answer(0, "8|TIMEOUT|0:0|None|name\n", ""))
    assert states(slurm, "7", "8") == {"7": "RUNNING", "8": "TIMEOUT"}
    assert slurm.asked == [("squeue", "7,8"), ("squeue", "8"), ("--allocations", "8"), ("--completion", "8")]


@pytest.mark.parametrize("unlisted", [Answer(0, "", ""), INVALID])
def test_without_accounting_the_completed_jobs_are_looked_through(unlisted: Answer) -> None:
    slurm = Slurm(unlisted, completion=Answer(0, "8|NODE_FAIL|name\n", "sacct: error: Unknown type ArrayJobId: 6\n"))
    assert states(slurm, "8") == {"8": "NODE_FAIL"}
    assert states(Slurm(unlisted), "8") == {"8": "unknown"}


def test_a_controller_that_is_away_is_asked_once() -> None:
    for away in (AWAY, Answer(None, "", "")):
        slurm = Slurm(away)
        assert states(slurm, "7", "8") == {}
        assert slurm.asked == [("squeue", "7,8")]
