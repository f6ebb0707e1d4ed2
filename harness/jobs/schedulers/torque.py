"""Torque: PBS's older sister, with ``nodes=N:ppn=M``, ``-t`` arrays, and completed jobs shown as state C."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.jobs.schedulers import pbs_family
from harness.jobs.schedulers.interface import Answer, ArrayRange, FirstQuestion, Submitted
from harness.jobs.schedulers.pbs_family import Codes, Record, codes_of
from harness.jobs.schedulers.words import LOG_NOT_OPENED, log_path, mebibytes, plain, whole_line
from harness.model.cluster import Cluster
from harness.model.job import JobState, Observation, Placement
from harness.units import format_duration

element_id = pbs_family.element_id
array_id = pbs_family.array_id
variables = pbs_family.variables
submit_argv = pbs_family.submit_argv
find_argv = pbs_family.find_argv
cancel_argv = pbs_family.cancel_argv

PREFIX = "#PBS"
JOB_ID_VARIABLE = "PBS_JOBID"
ARRAY_INDEX_VARIABLE = "PBS_ARRAYID"
#: its ``-x`` means XML, and it has no JSON
FIRST_QUESTION: FirstQuestion | None = None

_STATES = {**dict.fromkeys("QHWT", JobState.QUEUED), **dict.fromkeys("RES", JobState.RUNNING)}
_COMPLETED = "C"
_OVER_WALLTIME = -11  # JOB_EXEC_OVERLIMIT_WT
#: what else the server's own exit statuses say (JOB_EXEC_* in Torque's job.h), where it leaves no comment
_KILLED = {-10: "memory exceeded", -12: "CPU time exceeded"}
_LOG_NOT_OPENED = -9  # JOB_EXEC_STDOUTFAIL
_KILLED_BY_TERM, _KILLED_BY_KILL = 256 + 15, 256 + 9
#: pbs_error_db.h, which counts otherwise than PBS: MAXUSERQUED; QUNOENB, NOCONNECTS, RESCUNAV, MAXQUED, SVRDOWN,
#: SERVER_BUSY; SYSTEM, INTERNAL, PROTOCOL, TIMEOUT, SOCKET_FAULT … SOCKET_CLOSE, PREMATURE_EOF
_CODES = Codes(
    codes_of(15076),
    codes_of(15023, 15035, 15046, 15048, 15062, 15134),
    codes_of(15012, 15013, 15033, 15085, 15096, 15097, 15098, 15099, 15114),
)


def directives(
    cluster: Cluster, placement: Placement, job_name: str, output: str, array: ArrayRange | None = None
) -> list[str]:
    """The request. ``-P`` would name a proxy user here, so a project is charged through ``-A`` unless an account is."""
    lines = [f"-N {job_name}", "-S /bin/bash", "-j oe", f"-o {log_path(output)}", "-m n", "-r n"]
    if array is not None:
        lines.append(f"-t 0-{array.size - 1}" + (f"%{array.throttle}" if array.throttle else ""))
    for flag, value in (("-q", placement.queue), ("-A", placement.account or placement.project)):
        if value:
            lines.append(f"{flag} {plain(value, flag)}")
    lines.append(f"-l {_nodes(cluster, placement)}")
    if placement.memory_bytes:
        # mem is the whole job's
        lines.append(f"-l mem={placement.nodes * mebibytes(placement.memory_bytes)}mb")
    lines.append(f"-l walltime={format_duration(placement.walltime_s)}")
    if cluster.directives.exclusive:
        lines.append("-n")
    return lines + [whole_line(line) for line in cluster.directives.extra]


def _nodes(cluster: Cluster, placement: Placement) -> str:
    words = [f"nodes={placement.nodes}", f"ppn={placement.cores_per_node * cluster.directives.ncpus_per_core}"]
    words += [f"gpus={placement.gpus_per_node}"] if placement.gpus_per_node else []
    extra = cluster.directives.select_extra
    return ":".join([*words, *([plain(extra, "select_extra")] if extra else [])])


def parse_submit(answer: Answer) -> Submitted:
    return pbs_family.parse_submit(answer, _CODES)


def status_argv(job_ids: Sequence[str]) -> list[list[str]]:
    """Plain ``-f``: Torque's ``-x`` means XML, and completed jobs are shown without it for a while."""
    return [["qstat", "-f", *group] for group in pbs_family.status_groups(job_ids)]


def parse_status(job_ids: Sequence[str], answers: Sequence[Answer]) -> dict[str, Observation]:
    return pbs_family.parse_status(job_ids, answers, observe)


def parse_find(answer: Answer) -> list[Observation] | None:
    return pbs_family.parse_find(answer, observe)


def observe(job_id: str, record: Record) -> Observation | None:
    """One job's record; None where its state is no letter that Torque has."""
    letter = record.get("job_state", "")
    status = record.get("exit_status", "")
    exit_status = int(status) if re.fullmatch(r"-?\d+", status) else None
    state = _completed_state(record, exit_status) if letter == _COMPLETED else _STATES.get(letter)
    if state is None:
        return None
    return Observation(
        job_id=job_id,
        state=state,
        native_state=letter,
        exit_status=exit_status if state.ended else None,
        reason=_reason(record.get("comment", ""), exit_status),
        job_name=_name(job_id, record.get("Job_Name", "")),
        elements=pbs_family.elements(record),
    )


def _reason(comment: str, exit_status: int | None) -> str:
    """Torque's own exit status beats a comment: schedulers leave theirs of the job's start."""
    if exit_status == _LOG_NOT_OPENED:
        return LOG_NOT_OPENED
    return _KILLED.get(exit_status or 0, "") or comment


def _name(job_id: str, name: str) -> str:
    """The name that was submitted: Torque adds ``-index`` to it for each element of an array."""
    return name.rpartition("-")[0] or name if re.search(r"\[\d+\]", job_id) else name


def _completed_state(record: Record, exit_status: int | None) -> JobState:
    """qdel and the walltime both end a job with TERM and 271, or KILL where it does not heed that; the time it used
    tells them apart."""
    if exit_status == 0:
        return JobState.SUCCEEDED
    if exit_status == _OVER_WALLTIME:
        return JobState.TIMED_OUT
    if exit_status in (_KILLED_BY_TERM, _KILLED_BY_KILL):
        used, limit = (_seconds(record.get(f"{group}.walltime", "")) for group in ("resources_used", "Resource_List"))
        if used is not None and limit is not None and used >= limit:
            return JobState.TIMED_OUT
    return JobState.CANCELLED if exit_status in (None, _KILLED_BY_TERM) else JobState.FAILED


def _seconds(text: str) -> int | None:
    if not re.fullmatch(r"\d+(:\d+)*", text):
        return None
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part)
    return total
