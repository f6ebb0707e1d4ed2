"""Slurm. Tables with fixed columns are read, not JSON: the JSON of squeue changes its shape between versions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from harness.jobs.schedulers import slurm_variables
from harness.jobs.schedulers.interface import Answer, ArrayRange, FirstAnswer, FirstQuestion, Submitted
from harness.jobs.schedulers.slurm_variables import said
from harness.jobs.schedulers.words import LOG_NOT_OPENED, NO_LOG, mebibytes, plain, whole_line
from harness.model.cluster import Cluster
from harness.model.job import JobState, Observation, Placement
from harness.units import format_duration

variables = slurm_variables.variables

PREFIX = "#SBATCH"
JOB_ID_VARIABLE = "SLURM_JOB_ID"
ARRAY_INDEX_VARIABLE = "SLURM_ARRAY_TASK_ID"

IDS_PER_CALL = 200

# squeue's columns and their widths; the name comes last so that a wide character in it moves nothing
_COLUMNS = (("JobArrayID", 64), ("State", 24), ("exit_code", 16), ("Reason", 64), ("Name", 64))
_SACCT_FIELDS = ("JobID", "State", "ExitCode", "Reason", "JobName")
_COMPLETION_FIELDS = ("JobID", "State", "JobName")

_QUEUED = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT")
_RUNNING = ("RUNNING", "CONFIGURING", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED", "SUSPENDED")
_FAILED = (
    *("FAILED", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL"),
    *("OUT_OF_MEMORY", "PREEMPTED", "DEADLINE"),
)
_STATES = {
    **dict.fromkeys(_QUEUED, JobState.QUEUED),
    **dict.fromkeys(_RUNNING, JobState.RUNNING),
    **dict.fromkeys(_FAILED, JobState.FAILED),
    "COMPLETED": JobState.SUCCEEDED,
    "CANCELLED": JobState.CANCELLED,
    "TIMEOUT": JobState.TIMED_OUT,
}
_UNKNOWN = "unknown"
# signal 53, which there is not: slurmd could not open the log, and nothing was run
_LOG_NOT_OPENED = 128 + 53
# reasons that waiting does not cure; limits "per job" are the request's own fault
_NEVER = re.compile(
    r"PartitionConfig|PartitionNodeLimit|PartitionTimeLimit|DependencyNeverSatisfied|BadConstraints"
    r"|Invalid(Account|QOS)|(Assoc|QOS)\w+(PerJob|PerJobLimit)"
)
# how many jobs one may have submitted: a user, or an account that others share; in an answer to sbatch
_MANY_OF_ONES_OWN = re.compile(r"MaxSubmitJob(?!\w*PerAccount)")
_MANY_QUEUED = re.compile(r"SubmitJob|temporarily un(able|available)|try again", re.IGNORECASE)
# any other limit that sbatch names; the line behind it is one for all limits and speaks of the number of jobs, too
_OTHER_LIMIT = re.compile(r"\b(Assoc|QOS)(Grp|Max|Min)\w+")
_SOME_LIMIT = re.compile(r"job submit limit", re.IGNORECASE)
# answers after which the job may or may not be queued
_MIDWAY = re.compile(r"timed out|Zero Bytes|Unexpected message|Transport endpoint|Connection reset", re.IGNORECASE)
_UNREACHABLE = re.compile(r"Unable to contact slurm controller \(connect failure\)|Unable to resolve")


def directives(
    cluster: Cluster, placement: Placement, job_name: str, output: str, array: ArrayRange | None = None
) -> list[str]:
    """The request. The walltime is rounded up to whole minutes by Slurm itself."""
    lines = [f"--job-name={job_name}", f"--output={_log(output)}", "--open-mode=append", "--no-requeue"]
    if array is not None:
        lines.append(f"--array=0-{array.size - 1}" + (f"%{array.throttle}" if array.throttle else ""))
    for flag, value in (("partition", placement.queue), ("account", placement.account or placement.project)):
        if value:
            lines.append(f"--{flag}={plain(value, flag)}")
    lines += [
        f"--nodes={placement.nodes}",
        f"--ntasks-per-node={placement.ranks_per_node}",
        f"--cpus-per-task={placement.cores_per_rank}",
    ]
    if not {"HINT", "THREADS_PER_CORE", "NTASKS_PER_CORE", "EXTRA_NODE_INFO"} & said(cluster):
        # Where nodes have hardware threads Slurm counts them as CPUs: 8 CPUs would be 4 cores.
        lines.append("--threads-per-core=1")
    if placement.gpus_per_node:
        kind = f"{plain(cluster.directives.gpu_type, 'gpu_type')}:" if cluster.directives.gpu_type else ""
        lines.append(f"--gres=gpu:{kind}{placement.gpus_per_node}")
    if placement.memory_bytes:
        lines.append(f"--mem={mebibytes(placement.memory_bytes)}M")
    lines.append(f"--time={format_duration(placement.walltime_s)}")
    if cluster.directives.exclusive:
        lines.append("--exclusive")
    return lines + [whole_line(line) for line in cluster.directives.extra]


def _log(path: str) -> str:
    """The log's path; in a directory, which ends with ``/``, one for each element of an array.

    ``%%`` is a percent sign, and quotes are read as a shell reads them (sbatch(1), tried with 22.05). A backslash
    would end the reading of all patterns, however it is quoted.
    """
    if not path.startswith("/") or not path.isprintable() or "\\" in path:
        return NO_LOG
    return shlex.quote(path.replace("%", "%%") + ("%a.log" if path.endswith("/") else ""))


def element_id(array_id: str, index: int) -> str:
    return f"{array_id}_{index}"


def array_id(job_id: str) -> str:
    return job_id.partition("_")[0]


def submit_argv(script: str, job_name: str) -> list[str]:
    """Requeue stands on the command line too, since a site may have its own way to ask for it."""
    return ["sbatch", "--parsable", "--no-requeue", f"--job-name={job_name}", script]


def parse_submit(answer: Answer) -> Submitted:
    """``--parsable`` prints ``id`` or ``id;cluster``."""
    message = answer.stderr.strip()
    if answer.returncode == 0:
        for line in reversed(answer.stdout.split("\n")):
            if match := re.fullmatch(r"(\d+)(;\S+)?", line.strip()):
                return Submitted("accepted", job_id=match[1])
    if _UNREACHABLE.search(message):
        return Submitted("refused", message=message, retryable=True)
    if answer.returncode is None or answer.returncode <= 0 or _MIDWAY.search(message):
        return Submitted("unknown", message=message or "sbatch gave no job id")
    retryable = bool(_MANY_QUEUED.search(message) or (_SOME_LIMIT.search(message) and not _OTHER_LIMIT.search(message)))
    by_count = bool(_MANY_OF_ONES_OWN.search(message))
    message = message or f"sbatch returned {answer.returncode}"
    return Submitted("refused", message=message, retryable=retryable, by_count=by_count)


def status_argv(job_ids: Sequence[str]) -> list[list[str]]:
    """squeue knows a job until some minutes after its end, sacct for good where a site has accounting.

    Where it has none, or none that answers, its list of completed jobs may tell: not of elements, since it names each
    by another id. An array is asked for by its one id and answers for all its elements.
    """
    asks = (_squeue(), _sacct("--allocations", _SACCT_FIELDS), _sacct("--completion", _COMPLETION_FIELDS))
    return [[*ask, f"--jobs={','.join(group)}"] for group in _in_groups(job_ids) for ask in asks]


def _sacct(source: str, fields: Sequence[str]) -> list[str]:
    return ["sacct", source, "--noheader", "--parsable2", f"--format={','.join(fields)}"]


def _squeue_argv(job_ids: Sequence[str]) -> list[list[str]]:
    return [[*_squeue(), f"--jobs={','.join(group)}"] for group in _in_groups(job_ids)]


def _parse_squeue(job_ids: Sequence[str], answer: Answer) -> FirstAnswer:
    """A job that squeue does not list may have ended minutes ago; only a controller that answers makes that likely."""
    if answer.returncode != 0:
        return FirstAnswer({}, is_away="Invalid job id specified" not in answer.stderr)
    listed = {row.job_id: row for row in _squeue_rows(answer.stdout) if row.state is not None}
    return FirstAnswer({job_id: listed[job_id] for job_id in job_ids if job_id in listed})


#: while squeue knows a job the site's database need not be asked; JSON changes its shape between versions
FIRST_QUESTION: FirstQuestion | None = FirstQuestion("squeue", _squeue_argv, _parse_squeue, tells_all=False)


def _in_groups(job_ids: Sequence[str]) -> list[list[str]]:
    """Jobs and whole arrays, so many at a time as one command asks for."""
    asked = list(dict.fromkeys(map(array_id, job_ids)))
    return [asked[i : i + IDS_PER_CALL] for i in range(0, len(asked), IDS_PER_CALL)]


def _squeue() -> list[str]:
    """One line per element: a list of waiting elements would be cut off where it is long."""
    columns = ",".join(f"{name}:{width}" for name, width in _COLUMNS)
    return ["squeue", "--noheader", "--array", "--states=all", f"--Format={columns}"]


def parse_status(job_ids: Sequence[str], answers: Sequence[Answer]) -> dict[str, Observation]:
    """``answers`` in the order of :func:`status_argv`: squeue, sacct and the completed jobs in turn.

    A job that an answering squeue does not list, and of whose end the others have no record, is unknown to Slurm: a
    living job is the controller's, whatever accounting still says of it.
    """
    found: dict[str, Observation] = {}
    for number, group in enumerate(_in_groups(job_ids)):
        asked = set(group)
        mine = [job_id for job_id in job_ids if array_id(job_id) in asked]
        found |= _of_group(mine, answers[number * len(_READERS) :])
    return {job_id: found[job_id] for job_id in job_ids if job_id in found and _teaches(found[job_id])}


def _of_group(job_ids: Sequence[str], answers: Sequence[Answer]) -> dict[str, Observation]:
    # ids begin anew one day: the last of several rows is the present job's
    listed, *recorded = (
        {row.job_id: row for row in read(answer.stdout)} if answer.returncode == 0 else {}
        for read, answer in zip(_READERS, answers, strict=False)
    )
    controller = answers[0]
    is_answered = controller.returncode == 0 or "Invalid job id specified" in controller.stderr
    found = {}
    for job_id in job_ids:
        rows = [source[job_id] for source in (listed, *recorded) if job_id in source]
        if is_answered and job_id not in listed:
            ended = [row for row in rows if row.state is not None and row.state.ended]
            rows = ended or [_without_record(job_id, listed, *recorded[:1])]
        if rows:
            # asked one after the other: the state further on is the later one
            found[job_id] = max(rows, key=_rank)
    return found


def _without_record(job_id: str, listed: Mapping[str, Observation], *more: Mapping[str, Observation]) -> Observation:
    """Of a waiting element that is cancelled Slurm keeps no record. Only of the last that waited: it is the array's
    own, which then has no index."""
    for source in (listed, *more):
        array = source.get(array_id(job_id))
        if array is not None and array.state is JobState.CANCELLED:
            return array.model_copy(update={"job_id": job_id, "if_unbegun": True})
    goes_on = any(array_id(other) == array_id(job_id) for other in listed)
    reason = "its array is still known, and this element is not in it" if goes_on else ""
    return Observation(job_id=job_id, state=None, native_state=_UNKNOWN, reason=reason)


def _rank(observation: Observation) -> int:
    return -1 if observation.state is None else observation.state.rank


def _teaches(observation: Observation) -> bool:
    """A listed job in a state that this harness has no word for is not unknown to Slurm: nothing is learnt."""
    return observation.state is not None or observation.native_state == _UNKNOWN


def find_argv(user: str) -> list[str]:
    return [*_squeue(), f"--user={user}"]


def parse_find(answer: Answer) -> list[Observation] | None:
    """Jobs in a state that this harness has no word for are there all the same, with ``state`` None."""
    return list(_squeue_rows(answer.stdout)) if answer.returncode == 0 else None


def cancel_argv(job_ids: Sequence[str]) -> list[list[str]]:
    groups = [list(job_ids[i : i + IDS_PER_CALL]) for i in range(0, len(job_ids), IDS_PER_CALL)]
    return [["scancel", *group] for group in groups]


def _squeue_rows(stdout: str) -> Iterator[Observation]:
    for line in stdout.split("\n"):
        cells, begin = [], 0
        for _, width in _COLUMNS:
            cells.append(line[begin : begin + width].strip())
            begin += width
        yield from _observations(*cells)


def _sacct_rows(stdout: str) -> Iterator[Observation]:
    """A row of an array's elements names all that waited at first, those that began as well: their own come last."""
    for job_id, state, exit_code, reason, name in sorted(_cells(stdout, _SACCT_FIELDS), key=_is_of_one):
        yield from _observations(job_id, state, exit_code, reason, name)


def _is_of_one(cells: Sequence[str]) -> bool:
    return "[" not in cells[0]


def _completion_rows(stdout: str) -> Iterator[Observation]:
    for job_id, state, name in _cells(stdout, _COMPLETION_FIELDS):
        yield from _observations(job_id, state, "", "", name)


def _cells(stdout: str, fields: Sequence[str]) -> Iterator[list[str]]:
    """Rows of ``--parsable2``; the last cell, the job's name, may hold the separator."""
    for line in stdout.split("\n"):
        cells = line.split("|", len(fields) - 1)
        if len(cells) == len(fields):
            yield cells


def _observations(job_id: str, state_word: str, exit_code: str, reason: str, name: str) -> Iterator[Observation]:
    """The jobs of one row: a waiting array is one row for all its elements. ``CANCELLED by 0`` names who did it."""
    if not job_id:
        return
    state = _STATES.get(state_word.partition(" ")[0].rstrip("+"))
    status = _exit_status(exit_code) if state is not None and state.ended else None
    if state is JobState.FAILED and status == _LOG_NOT_OPENED:
        reason = LOG_NOT_OPENED
    for element in _elements(job_id):
        yield Observation(
            job_id=element,
            state=state,
            native_state=state_word,
            exit_status=status,
            reason="" if reason == "None" else reason,
            never_runnable=state is JobState.QUEUED and bool(_NEVER.search(reason)),
            if_unbegun=element != job_id and state is not None and state.ended,
            job_name=name,
        )


def _elements(job_id: str) -> Iterator[str]:
    """``4_[2-5,7%2]`` → 4_2 … 4_5, 4_7; any other id is itself."""
    match = re.fullmatch(r"(\d+)_\[([\d,-]+)(?:%\d+)?\]", job_id)
    if match is None:
        yield job_id
        return
    for part in match[2].split(","):
        first, _, last = part.partition("-")
        yield from (f"{match[1]}_{index}" for index in range(int(first), int(last or first) + 1))


def _exit_status(word: str) -> int | None:
    """sacct prints ``code:signal``, squeue the raw status of wait(2); as a shell says it: 128 + signal."""
    if match := re.fullmatch(r"(\d+):(\d+)", word):
        code, signal = int(match[1]), int(match[2])
    elif word.isdigit():
        code, signal = int(word) >> 8, int(word) & 127
    else:
        return None
    return 128 + signal if signal else code


#: how the commands of :func:`status_argv` are read, in their order
_READERS = (_squeue_rows, _sacct_rows, _completion_rows)
