"""A cluster's scheduler, asked: the pure pairs of its dialect joined with the one place that runs processes."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import harness
from harness import catalog
from harness.jobs import engine, shell
from harness.jobs.local_registry import Registry
from harness.jobs.schedulers.interface import Answer, Scheduler, Submitted
from harness.model.cluster import Cluster
from harness.model.job import Observation

Runner = Callable[[Sequence[str]], Answer]


class Site:
    """Submit, observe, find and cancel jobs. ``run`` is passed in so that tests can play the scheduler.

    ``as_text``: the scheduler's JSON is known to be of no use. ``give_up_json`` hears why, once, when that is found.
    """

    #: how long one of its commands may take
    timeout_s = shell.TIMEOUT_S

    def __init__(
        self,
        cluster: Cluster,
        run: Runner | None = None,
        as_text: bool = False,
        give_up_json: Callable[[str], None] = lambda _why: None,
    ):
        self.scheduler: Scheduler = catalog.load(catalog.lookup(catalog.SCHEDULERS, cluster.scheduler, "scheduler"))
        self.is_local = cluster.scheduler == "local"
        self._variables = self.scheduler.variables(os.environ, cluster)
        self._run = run or (run_local if self.is_local else self._run_command)
        self._first = None if as_text else self.scheduler.FIRST_QUESTION
        self._give_up_json = give_up_json
        #: what came instead of an answer, the last time that jobs were asked about; empty after an answer
        self.silence = ""

    def _run_command(self, argv: Sequence[str]) -> Answer:
        return shell.run(argv, self.timeout_s, variables=self._variables)

    def element_id(self, array_id: str, index: int) -> str:
        return self.scheduler.element_id(array_id, index)

    def array_id(self, job_id: str) -> str:
        return self.scheduler.array_id(job_id)

    def submit(self, script: str, job_name: str) -> Submitted:
        return self.scheduler.parse_submit(self._run(self.scheduler.submit_argv(script, job_name)))

    def observe(self, job_ids: Sequence[str]) -> dict[str, Observation]:
        """What the scheduler says of these jobs, in as few commands as it allows; jobs it was silent on are absent.

        The scheduler's first question comes first. What it leaves open is asked in full; where that tells of a job
        which should have been told of, or where the first answer made no sense, it is not asked again.
        """
        found, is_away = self._ask_first(job_ids)
        left = [job_id for job_id in job_ids if job_id not in found]
        if not left or is_away:
            return found
        answers = [self._run(argv) for argv in self.scheduler.status_argv(left)]
        told = self.scheduler.parse_status(left, answers)
        if not found and not told:
            self.silence = next((complaint for answer in answers if (complaint := _complaint(answer))), "")
        missed = [job_id for job_id, seen in told.items() if seen.state is not None]
        if missed and self._first is not None and self._first.tells_all:
            self._distrust(f"{self._first.name} told nothing of {missed[0]}, though the server knows it")
        return found | told

    def _ask_first(self, job_ids: Sequence[str]) -> tuple[dict[str, Observation], bool]:
        """What is known from the first question, and whether the server was away."""
        self.silence = ""
        if (question := self._first) is None:
            return {}, False
        found: dict[str, Observation] = {}
        for argv in question.argv(job_ids):
            said = self._run(argv)
            answer = question.parse(job_ids, said)
            found |= answer.found
            if answer.is_away:
                self.silence = _complaint(said) or f"{question.name} gave no answer"
                return found, True
            if answer.broken:
                self._distrust(answer.broken)
                break
        return found, False

    def _distrust(self, why: str) -> None:
        self._first = None
        self._give_up_json(why)

    def jobs(self) -> list[Observation] | None:
        """This user's jobs, of this campaign or not; None when the answer may be incomplete."""
        return self.scheduler.parse_find(self._run(self.scheduler.find_argv(_user())))

    def cancel(self, job_ids: Sequence[str]) -> list[str]:
        """Ask for the end of jobs; returns what the scheduler complained of."""
        if not job_ids:
            return []
        answers = [self._run(argv) for argv in self.scheduler.cancel_argv(job_ids)]
        return [answer.stderr.strip() for answer in answers if answer.returncode != 0]


def _complaint(answer: Answer) -> str:
    """What a command said that failed; empty for one that did not."""
    if answer.returncode == 0:
        return ""
    return answer.stderr.strip() or ("no answer in time" if answer.returncode is None else "")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        return str(os.getuid())


def run_local(argv: Sequence[str]) -> Answer:
    """Run the local engine's command, which must find this very package wherever the harness was started.

    How jobs stand is read here and now: it is asked often, and another Python beside a measurement would be felt.
    """
    if list(argv[3:4]) == ["status"]:
        return Answer(0, engine.as_text(Registry(), argv[5:]), "")
    source = str(Path(harness.__file__).resolve().parent.parent)
    path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    return shell.run(argv, added={"PYTHONPATH": path})
