"""PBS Pro and OpenPBS, in the dialects of :class:`harness.model.cluster.Directives`: select chunks, Gadi's plain
``-l ncpus=``, Sophia's select that counts GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import UserError
from harness.jobs.schedulers import pbs_family, pbs_json
from harness.jobs.schedulers.interface import Answer, ArrayRange, FirstAnswer, FirstQuestion
from harness.jobs.schedulers.pbs_family import Record
from harness.jobs.schedulers.words import LOG_NOT_OPENED, log_path, mebibytes, plain, whole_line
from harness.model.cluster import Cluster
from harness.model.job import JobState, Observation, Placement
from harness.units import format_duration

element_id = pbs_family.element_id
array_id = pbs_family.array_id
variables = pbs_family.variables
submit_argv = pbs_family.submit_argv
parse_submit = pbs_family.parse_submit
find_argv = pbs_family.find_argv
cancel_argv = pbs_family.cancel_argv

PREFIX = "#PBS"
JOB_ID_VARIABLE = "PBS_JOBID"
ARRAY_INDEX_VARIABLE = "PBS_ARRAY_INDEX"

_STATES = {
    **dict.fromkeys("QHWTM", JobState.QUEUED),
    **dict.fromkeys("RESUB", JobState.RUNNING),
}
_ENDED = "FX"
_KILLED_AT_WALLTIME = -29  # JOB_EXEC_KILL_WALLTIME
_KILLED_BY_TERM = 256 + 15  # qdel, even where the script trapped TERM
#: what the server's own exit statuses say (JOB_EXEC_KILL_* in OpenPBS' job.h), where it leaves no comment
_KILLED = {-26: "virtual memory exceeded", -27: "memory exceeded", -28: "CPU time exceeded"}
_LOG_NOT_OPENED = -9  # JOB_EXEC_STDOUTFAIL
_DELETED = "91"  # substate of a job that qdel ended, whether or not it had begun
_FINISHED = "92"
_FAILED = "93"


def directives(
    cluster: Cluster, placement: Placement, job_name: str, output: str, array: ArrayRange | None = None
) -> list[str]:
    """The request. Environment is not passed here: ``-v`` splits at commas and doubles backslashes.

    ``-r n``: a requeued job would run a second time; arrays must be rerunnable, there the claim prevents it.
    """
    site = cluster.directives
    lines = [f"-N {job_name}", "-S /bin/bash", "-j oe", f"-o {log_path(output)}", "-m n"]
    lines.append("-r n" if array is None else "-r y")
    if array is not None:
        lines.append(f"-J {_array_words(array)}")
    for flag, value in (("-q", placement.queue), ("-A", placement.account), ("-P", placement.project)):
        if value:
            lines.append(f"{flag} {plain(value, flag)}")
    lines += [f"-l {request}" for request in _resources(cluster, placement)]
    lines.append(f"-l walltime={format_duration(placement.walltime_s)}")
    if site.filesystems:
        lines.append(f"-l filesystems={plain(site.filesystems, 'filesystems')}")
    return lines + [whole_line(line) for line in site.extra]


def _array_words(array: ArrayRange) -> str:
    if array.size < 2:
        raise UserError("a PBS array needs at least two jobs (-J 0-0 is refused); submit a single job instead")
    return f"0-{array.size - 1}" + (f"%{array.throttle}" if array.throttle else "")


def _resources(cluster: Cluster, placement: Placement) -> list[str]:
    style = cluster.directives.style
    if style == "plain":
        return _plain_resources(cluster, placement)
    if style == "by_gpu":
        if not placement.gpus_per_node:
            raise UserError(f"cluster {cluster.name!r} is asked for by GPUs; set gpus_per_rank to 1 or more")
        select = f"select={placement.nodes * placement.gpus_per_node}"
    elif style == "select":
        select = f"select={placement.nodes}:{_chunk(cluster, placement)}"
    else:
        raise UserError(
            f"cluster {cluster.name!r}: directives.style {style!r} is Torque's; PBS has select, plain, by_gpu"
        )
    extra, place = cluster.directives.select_extra, _place(cluster, placement)
    select += f":{plain(extra, 'select_extra')}" if extra else ""
    return [select, *([f"place={plain(place, 'place')}"] if place else [])]


def _place(cluster: Cluster, placement: Placement) -> str:
    """How the chunks are spread, and with whom they share their nodes.

    A chunk is one node's share, and by PBS' own default (``free``) several of them may come to lie on one node.
    """
    site = cluster.directives
    if site.place:
        words = site.place.split(":")
    elif site.style == "by_gpu":
        words = ["pack" if placement.nodes == 1 else "free"] if site.exclusive else []
    else:
        words = ["scatter"] if placement.nodes > 1 or site.exclusive else []
    if site.exclusive and not {"excl", "exclhost", "shared"} & set(words):
        # arrangement, then sharing, then grouping: pbs_resources(7B)
        grouping = [word for word in words if word.startswith("group=")]
        words = [*(word for word in words if word not in grouping), "excl", *grouping]
    return ":".join(words)


def _chunk(cluster: Cluster, placement: Placement) -> str:
    """One chunk is one node's share. Without ``mpiprocs`` the node file has one line per chunk, not per rank."""
    ncpus = placement.cores_per_node * cluster.directives.ncpus_per_core
    words = [f"ncpus={ncpus}", f"mpiprocs={placement.ranks_per_node}"]
    words += [f"ngpus={placement.gpus_per_node}"] if placement.gpus_per_node else []
    words += [f"mem={mebibytes(placement.memory_bytes)}mb"] if placement.memory_bytes else []
    return ":".join(words)


def _plain_resources(cluster: Cluster, placement: Placement) -> list[str]:
    """Sums over all nodes: the server places them. Select would be refused beside these."""
    if cluster.directives.exclusive:
        raise UserError(
            f"cluster {cluster.name!r}: directives.exclusive cannot be said in style plain, which has no place=; leave "
            "it out, and ask for all cores of a node where a run is to be alone there"
        )
    lines = [f"ncpus={placement.nodes * placement.cores_per_node * cluster.directives.ncpus_per_core}"]
    lines += [f"ngpus={placement.nodes * placement.gpus_per_node}"] if placement.gpus_per_node else []
    lines += [f"mem={placement.nodes * mebibytes(placement.memory_bytes)}mb"] if placement.memory_bytes else []
    return lines


def status_argv(job_ids: Sequence[str]) -> list[list[str]]:
    """Each group is asked for with and without history: -x fails where a site keeps none, its absence hides the ended.

    Elements of arrays are read one by one; the array's own Exit_status is 0 whatever became of them.
    """
    groups = pbs_family.status_groups(job_ids)
    return [["qstat", *history, "-f", *group] for group in groups for history in ([], ["-x"])]


def parse_status(job_ids: Sequence[str], answers: Sequence[Answer]) -> dict[str, Observation]:
    return pbs_family.parse_status(job_ids, answers, observe)


def _parse_json(job_ids: Sequence[str], answer: Answer) -> FirstAnswer:
    return pbs_json.parse(job_ids, answer, observe)


FIRST_QUESTION: FirstQuestion | None = FirstQuestion("qstat -F json", pbs_json.argv, _parse_json, tells_all=True)


def parse_find(answer: Answer) -> list[Observation] | None:
    return pbs_family.parse_find(answer, observe)


def observe(job_id: str, record: Record) -> Observation | None:
    """One job's record; None where its state is no letter that PBS has."""
    letter, comment = record.get("job_state", ""), record.get("comment", "")
    exit_status = _exit_status(record) if "[]" not in job_id else None
    has_ended = letter in _ENDED and letter != ""
    state = _ended_state(record, exit_status, "[]" in job_id) if has_ended else _STATES.get(letter)
    if state is None:
        return None
    has_expired = has_ended and _is_expired_element(job_id, record)
    return Observation(
        job_id=job_id,
        state=JobState.CANCELLED if has_expired else state,
        native_state=letter,
        exit_status=exit_status if state.ended else None,
        if_unbegun=has_expired,
        reason=LOG_NOT_OPENED if exit_status == _LOG_NOT_OPENED else comment or _KILLED.get(exit_status or 0, ""),
        never_runnable=state is JobState.QUEUED and comment.startswith("Can Never Run"),
        job_name=record.get("Job_Name", ""),
        elements=pbs_family.elements(record),
    )


def _is_expired_element(job_id: str, record: Record) -> bool:
    """Whether an array's element has ended and no more is known of it: it "has completed execution or been deleted"
    (qstat(1B), state X). One that never began was deleted: the server only marks it then, and it has no exit status."""
    is_element = "[" in job_id and "[]" not in job_id
    return is_element and _exit_status(record) is None and record.get("substate") == _FINISHED


def _exit_status(record: Record) -> int | None:
    word = record.get("Exit_status", "")
    return int(word) if word.lstrip("-").isdigit() else None


def _ended_state(record: Record, exit_status: int | None, is_array: bool) -> JobState:
    """How PBS says that a job ended. A job without Exit_status never ran: deleted before, or its dependency failed."""
    substate = record.get("substate", "")
    if exit_status == _KILLED_AT_WALLTIME:
        return JobState.TIMED_OUT
    if substate == _DELETED or exit_status == _KILLED_BY_TERM:
        return JobState.CANCELLED
    if exit_status == 0 or (is_array and substate != _FAILED):
        return JobState.SUCCEEDED
    return JobState.FAILED
