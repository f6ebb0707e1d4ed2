"""``qstat -f -F json``, read strictly: either it is JSON, or nothing is taken from it.

A server writes text that is no JSON where a job's environment or arguments hold a backslash, a bare ``nan`` or a
number like ``1.``; some versions print only the first of several jobs, and return 0. So this is the first question and
never the last word: what it leaves open is asked as plain text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from harness.jobs.schedulers import pbs_family
from harness.jobs.schedulers.interface import Answer, FirstAnswer
from harness.jobs.schedulers.pbs_family import Observe, Record, short_id

_AWAY = "cannot connect to server"


def argv(job_ids: Sequence[str]) -> list[list[str]]:
    """With history, so that one command tells of the waiting, the running and the ended alike."""
    return [["qstat", "-x", "-f", "-F", "json", *group] for group in pbs_family.status_groups(job_ids)]


def parse(job_ids: Sequence[str], answer: Answer, observe: Observe) -> FirstAnswer:
    """The jobs among ``job_ids`` that have a record of their own; of a site without history none has."""
    if _AWAY in answer.stderr:
        return FirstAnswer({}, is_away=True)
    if answer.returncode is None:
        return FirstAnswer({}, broken="qstat -F json gave no answer in time")
    try:
        found = records(answer.stdout)
    except ValueError as error:
        return FirstAnswer({}, broken=f"qstat -F json printed what is no JSON: {error}")
    seen = {short_id(job_id): observe(job_id, record) for job_id, record in found.items()}
    known = {key: observation for key, observation in seen.items() if observation is not None}
    return FirstAnswer(pbs_family.told([job_id for job_id in job_ids if short_id(job_id) in known], known))


def records(stdout: str) -> dict[str, Record]:
    """Each job's attributes by their ``qstat -f`` names.

    Raises:
        ValueError: it is no JSON, or JSON of another form.
    """
    document = json.loads(stdout, parse_constant=_refuse)
    jobs = document.get("Jobs", {}) if isinstance(document, dict) else None
    if not isinstance(jobs, dict) or not all(isinstance(record, dict) for record in jobs.values()):
        raise ValueError("it holds no table of jobs")
    return {job_id: _flat(attributes) for job_id, attributes in jobs.items()}


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _flat(attributes: Mapping[str, object]) -> dict[str, str]:
    record: dict[str, str] = {}
    for name, value in attributes.items():
        if isinstance(value, Mapping):
            record |= {f"{name}.{inner}": str(word) for inner, word in value.items()}
        else:
            record[name] = str(value)
    return record
