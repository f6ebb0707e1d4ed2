"""Processes are run in one place, and a scheduler is asked through its dialect alone."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from simulation_support import CLUSTER

from harness.cli.main import cli
from harness.errors import UserError
from harness.jobs import shell
from harness.jobs.schedulers.interface import Answer
from harness.jobs.site import Site


def test_what_a_command_says_is_returned() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"
    assert shell.run([sys.executable, "-c", code]) == Answer(7, "out\n", "err\n")


def test_arguments_reach_the_command_as_they_are(tmp_path: Path) -> None:
    words = ["a b", "$(touch pwned)", "'\"", "new\nline", "ü", "*"]
    answer = shell.run([sys.executable, "-c", "import sys; print(repr(sys.argv[1:]))", *words])
    assert answer.stdout == repr(words) + "\n"


def test_a_command_that_is_not_there_answers_as_a_shell_would() -> None:
    answer = shell.run(["no-such-qsub"])
    assert (answer.returncode, answer.stderr) == (127, "no-such-qsub: No such file or directory")


def test_a_command_that_hangs_is_ended_and_its_outcome_is_unknown() -> None:
    answer = shell.run(["bash", "-c", "echo begun; sleep 60 & sleep 60"], timeout_s=5)
    assert answer == Answer(None, "begun\n", "")


def test_a_command_has_a_session_of_its_own_and_no_terminal() -> None:
    code = "import os, sys; print(os.getsid(0) == os.getpid(), sys.stdin.read() == '')"
    assert shell.run([sys.executable, "-c", code]).stdout == "True True\n"


def test_bytes_that_are_no_text_do_no_harm() -> None:
    assert shell.run(["printf", r"\xff\x41"]).stdout == "\ufffdA"


class Recorder:
    def __init__(self, *answers: Answer):
        self.answers, self.asked = list(answers), list[Sequence[str]]()

    def __call__(self, argv: Sequence[str]) -> Answer:
        self.asked.append(argv)
        return self.answers.pop(0)


def test_no_jobs_no_questions() -> None:
    recorder = Recorder()
    site = Site(CLUSTER, recorder)
    assert (site.observe([]), site.cancel([]), recorder.asked) == ({}, [], [])


def test_complaints_about_a_cancellation_are_returned() -> None:
    site = Site(CLUSTER, Recorder(Answer(1, "", "scancel: error: Kill job error\n")))
    assert site.cancel(["17"]) == ["scancel: error: Kill job error"]


def test_an_answer_that_cannot_be_trusted_is_none() -> None:
    assert Site(CLUSTER, Recorder(Answer(None, "", ""))).jobs() is None


def test_a_detached_process_writes_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = shell.start_detached([sys.executable, "-c", "import os; print(os.getsid(0))"], log)
    child.wait(timeout=120)
    assert int(log.read_text()) == child.pid != os.getsid(0)


@pytest.mark.parametrize("verb", ["run", "submit"])
def test_a_cluster_that_cannot_be_asked_from_here_is_refused_before_anything_is_written(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "qsub").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    sweep = ["configs/sweeps/nus_cpu_cores.yml", "--cluster", "nus-volta", "--only", "cpu_cores == 10"]
    done = CliRunner().invoke(cli, [verb, *sweep, "--results", str(tmp_path / "results")])
    assert isinstance(done.exception, UserError)
    assert str(done.exception).startswith(
        f"not in PATH on {socket.gethostname()}: qstat, qdel; nus-volta is asked from"
    )
    assert not (tmp_path / "results").exists()
