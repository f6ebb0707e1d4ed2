"""The local engine's command line, as the other schedulers have theirs: see :mod:`harness.jobs.engine`.

A directive is ``#LOCAL key=value`` with the value in JSON, so that any path fits on a line. Keys: ``name``,
``cores``, ``memory_bytes``, ``walltime_s``, ``exclusive`` (no other local job at the same time), ``output``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import UserError
from harness.jobs import local_registry
from harness.jobs.schedulers.interface import Answer, ArrayRange, FirstQuestion, Submitted
from harness.model.cluster import Cluster
from harness.model.job import JobState, Observation, Placement

PREFIX = local_registry.PREFIX
JOB_ID_VARIABLE = local_registry.JOB_ID_VARIABLE
ARRAY_INDEX_VARIABLE = ""
FIRST_QUESTION: FirstQuestion | None = None

REFUSED = local_registry.REFUSED

_ENGINE = (sys.executable, "-m", "harness.jobs.engine")


def directives(
    cluster: Cluster, placement: Placement, job_name: str, output: str, array: ArrayRange | None = None
) -> list[str]:
    """The request; arrays are refused, for the local engine has none."""
    if array is not None:
        raise UserError("the local engine runs no job arrays; submit the jobs one by one")
    request = {
        "name": job_name,
        "cores": placement.cores_per_node,
        "memory_bytes": placement.memory_bytes,
        "walltime_s": placement.walltime_s,
        "exclusive": cluster.directives.exclusive,
        "output": output,
    }
    return [f"{key}={json.dumps(value)}" for key, value in request.items() if value is not None]


def element_id(array_id: str, index: int) -> str:
    raise UserError(f"the local engine runs no job arrays, so {array_id!r} has no element {index}")


def array_id(job_id: str) -> str:
    return job_id


def variables(environ: Mapping[str, str], cluster: Cluster) -> dict[str, str]:
    return dict(environ)


def submit_argv(script: str, job_name: str) -> list[str]:
    return [*_ENGINE, "submit", "--name", job_name, "--", script]


def parse_submit(answer: Answer) -> Submitted:
    """The job's id is the only word on stdout. A crash of the engine's command leaves the outcome unknown."""
    if answer.returncode == 0 and (job_id := answer.stdout.strip()):
        return Submitted("accepted", job_id=job_id)
    message = answer.stderr.strip() or "the local engine gave no answer"
    return Submitted("refused" if answer.returncode == REFUSED else "unknown", message=message)


def status_argv(job_ids: Sequence[str]) -> list[list[str]]:
    return [[*_ENGINE, "status", "--", *job_ids]] if job_ids else []


def parse_status(job_ids: Sequence[str], answers: Sequence[Answer]) -> dict[str, Observation]:
    """Jobs of another host are left out by the engine: nothing can be learnt about them here."""
    found = [o for answer in answers for o in _observations(answer) or []]
    return {o.job_id: o for o in found if o.job_id in set(job_ids)}


def find_argv(user: str) -> list[str]:
    """The registry is the user's own, so ``user`` is not needed."""
    return [*_ENGINE, "find"]


def parse_find(answer: Answer) -> list[Observation] | None:
    return _observations(answer)


def cancel_argv(job_ids: Sequence[str]) -> list[list[str]]:
    return [[*_ENGINE, "cancel", "--", *job_ids]] if job_ids else []


def _observations(answer: Answer) -> list[Observation] | None:
    if answer.returncode != 0:
        return None
    try:
        return [_observation(record) for record in json.loads(answer.stdout)]
    except (ValueError, KeyError, TypeError):
        return None


def _observation(record: dict[str, Any]) -> Observation:
    state = record["state"]
    return Observation(
        job_id=record["id"],
        state=None if state == "UNKNOWN" else JobState(state),
        native_state=state,
        exit_status=record.get("exit_status"),
        reason=record.get("reason", ""),
        job_name=record.get("name", ""),
    )
