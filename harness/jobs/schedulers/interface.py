"""A scheduler, as pure pairs: build an argument vector, understand the answer. One place elsewhere runs processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from harness.model.cluster import Cluster
from harness.model.job import Observation, Placement


@dataclass(frozen=True)
class Answer:
    """What a finished scheduler command left: ``returncode`` None means it timed out and may yet take effect."""

    returncode: int | None
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Submitted:
    """What became of a submission.

    accepted: ``job_id`` is set. refused: the scheduler said no, ``message`` says why in its words; nothing was queued.
    unknown: the answer does not tell (time-out, server lost); only a search by job name can.
    retryable: the same may be accepted later. by_count: it was refused for the number of jobs that the user has.
    """

    outcome: Literal["accepted", "refused", "unknown"]
    job_id: str = ""
    message: str = ""
    retryable: bool = False
    by_count: bool = False


@dataclass(frozen=True)
class ArrayRange:
    """Indices 0 … ``size - 1`` of a job array, at most ``throttle`` of them at once."""

    size: int
    throttle: int | None = None


@dataclass(frozen=True)
class FirstAnswer:
    """What the answer to a first question told for certain.

    is_away: the server was not reached, so nothing else need be asked now. ``broken``: why no such answer is to be
    trusted from here on.
    """

    found: Mapping[str, Observation]
    is_away: bool = False
    broken: str = ""


@dataclass(frozen=True)
class FirstQuestion:
    """A cheap question about jobs: the argument vectors for some of them, and what one answer tells.

    ``tells_all``: it tells of every job that the scheduler knows, so that one left out is a fault.
    """

    name: str
    argv: Callable[[Sequence[str]], list[list[str]]]
    parse: Callable[[Sequence[str], Answer], FirstAnswer]
    tells_all: bool


class Scheduler(Protocol):
    """Implemented by one module each, as module-level functions of these names."""

    #: prefix of a directive line: ``#PBS``, ``#SBATCH``; empty where there are none
    PREFIX: str
    #: shell variable that holds the job's id inside the job
    JOB_ID_VARIABLE: str
    #: shell variable that holds the array index inside the job; empty where there are no arrays
    ARRAY_INDEX_VARIABLE: str
    #: asked about all jobs, before ``status_argv`` is asked about those that it leaves open; None: there is no other
    FIRST_QUESTION: FirstQuestion | None

    def directives(
        self, cluster: Cluster, placement: Placement, job_name: str, output: str, array: ArrayRange | None = None
    ) -> list[str]:
        """The directive lines without their prefix; ``output`` is the path for the scheduler's own log.

        A path that ends in ``/`` is an existing directory, where each element of an array gets a log of its own.
        """

    def element_id(self, array_id: str, index: int) -> str:
        """The id of an array's element, from the id that the submission gave; never called without arrays."""

    def array_id(self, job_id: str) -> str:
        """The id of the array that the job is an element of; any other id is itself."""

    def variables(self, environ: Mapping[str, str], cluster: Cluster) -> dict[str, str]:
        """What the scheduler's commands are given of a user's environment: variables are left out that change what is
        asked of them, or that tell of a job which the harness itself runs in."""

    def submit_argv(self, script: str, job_name: str) -> list[str]: ...

    def parse_submit(self, answer: Answer) -> Submitted: ...

    def status_argv(self, job_ids: Sequence[str]) -> list[list[str]]:
        """The commands that ask for these jobs, as few as the scheduler safely allows; elements come one by one."""

    def parse_status(self, job_ids: Sequence[str], answers: Sequence[Answer]) -> dict[str, Observation]:
        """One observation for each id that the answers speak of; unknown jobs get ``state`` None.

        Ids about which nothing was learnt (server down, broken record) are left out.
        """

    def find_argv(self, user: str) -> list[str]:
        """The command that lists the user's jobs by name, for reconciliation and for counting the queue."""

    def parse_find(self, answer: Answer) -> list[Observation] | None:
        """The user's jobs with ``job_name``; None when the answer cannot be trusted to be complete."""

    def cancel_argv(self, job_ids: Sequence[str]) -> list[list[str]]: ...
