"""What PBS Pro, OpenPBS and Torque have in common: commands, records of ``qstat -f``, messages and return codes.

Plain text is what they all understand, and it has none of the faults of ``-F json`` (:mod:`.pbs_json`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.jobs.schedulers.interface import Answer, Submitted
from harness.model.cluster import Cluster
from harness.model.job import JobState, Observation

#: attributes of one job by their ``qstat -f`` names, such as ``Resource_List.walltime``
Record = Mapping[str, str]
#: a dialect's reading of one record; None where its state is no letter that the dialect has
Observe = Callable[[str, Record], Observation | None]

_JOB_ID = r"\d+(?:\[\d*\])?(?:\.[\w.-]+)?"
_SUBMITTED = re.compile(r"\d+(?:\[\])?\.[\w.-]+")
# of a Torque whose display_job_server_suffix is off
_SUBMITTED_BARE = re.compile(r"\d+(?:\[\])?")
_TEXT_RECORD = re.compile(rf"^Job Id: ({_JOB_ID})\s*$", re.MULTILINE)
_TEXT_ATTRIBUTE = re.compile(r"^ {4}([\w.]+) = (.*)$")
_UNKNOWN = re.compile(rf"Unknown Job Id (?:Error )?({_JOB_ID})", re.IGNORECASE)
_INDEX = re.compile(r"\[\d*\]")
_FINISHED = re.compile(rf"({_JOB_ID}) Job has finished")


@dataclass(frozen=True)
class Codes:
    """What a dialect's error numbers, from 15000 on, mean to who submits; of each a process returns 8 bits.

    own_limit: this user has too many jobs. later: it may be accepted another time. midway: it may have been queued.
    """

    own_limit: frozenset[int]
    later: frozenset[int]
    midway: frozenset[int]


def codes_of(*numbers: int) -> frozenset[int]:
    return frozenset(number & 255 for number in numbers)


#: pbs_error.h: ENTLIMCT; QUNOENB, NOCONNECTS, MAXQUED; SYSTEM, INTERNAL, PROTOCOL
PBS_CODES = Codes(codes_of(15142), codes_of(15021, 15033, 15046), codes_of(15010, 15011, 15031))
_BROKEN_OFF = 255
# Torque's texts, which outlive its numbers
_OWN_LIMIT = re.compile(r"already in queue for user|current user's jobs", re.IGNORECASE)
_LATER = re.compile(
    r"Maximum number of jobs already in queue|Queue is not enabled|No free connections|server .*\bbusy|Server shutting",
    re.IGNORECASE,
)
# qstat's codes when some of the jobs asked for have gone: unknown (15001), finished (15139)
_SOME_GONE = {15001 & 255, 15139 & 255}

#: ids in one command line; a server answers hundreds in a fraction of a second
IDS_PER_CALL = 50


def in_groups(job_ids: Sequence[str]) -> list[list[str]]:
    return [list(job_ids[i : i + IDS_PER_CALL]) for i in range(0, len(job_ids), IDS_PER_CALL)]


def element_id(array_id: str, index: int) -> str:
    """``7[].srv`` → ``7[3].srv``"""
    return array_id.replace("[]", f"[{index}]", 1)


def array_id(job_id: str) -> str:
    """``7[3].srv`` → ``7[].srv``"""
    return _INDEX.sub("[]", job_id, count=1)


def status_groups(job_ids: Sequence[str]) -> list[list[str]]:
    """The words after ``qstat -f`` that ask for these jobs; an array is asked for once, with -t for its elements."""
    asked = list(dict.fromkeys(array_id(job_id) for job_id in job_ids))
    return [[*(["-t"] if any("[]" in word for word in group) else []), *group] for group in in_groups(asked)]


def variables(environ: Mapping[str, str], _cluster: Cluster) -> dict[str, str]:
    """Without the prefix of directives that a user gave qsub: it would read none of ours."""
    return {name: value for name, value in environ.items() if name != "PBS_DPREFIX"}


def submit_argv(script: str, job_name: str) -> list[str]:
    """The name stands on the command line too, which beats every default; -C, since PBS_DPREFIX changes the prefix."""
    return ["qsub", "-C", "#PBS", "-N", job_name, script]


def cancel_argv(job_ids: Sequence[str]) -> list[list[str]]:
    return [["qdel", *group] for group in in_groups(job_ids)]


def parse_submit(answer: Answer, codes: Codes = PBS_CODES) -> Submitted:
    """qsub prints the job's id alone on a line; sites may print more before it. Without one, the code tells.

    A server that could not be reached has queued nothing; one that broke off in the middle may have.
    """
    lines = [line.strip() for line in answer.stdout.split("\n") if line.strip()]
    job_id = next((line for line in reversed(lines) if _SUBMITTED.fullmatch(line)), "")
    if not job_id and answer.returncode == 0 and lines and _SUBMITTED_BARE.fullmatch(lines[-1]):
        job_id = lines[-1]
    if job_id:
        return Submitted("accepted", job_id=job_id)
    code, message = answer.returncode, answer.stderr.strip().split("\nusage:")[0]
    if "cannot connect to server" in message:
        return Submitted("refused", message=message, retryable=True)
    if code is None or code <= 0 or code == _BROKEN_OFF or code in codes.midway:
        return Submitted("unknown", message=message or "qsub gave no job id")
    by_count = code in codes.own_limit or bool(_OWN_LIMIT.search(message))
    if by_count or code in codes.later or _LATER.search(message):
        return Submitted("refused", message=message or f"qsub returned {code}", retryable=True, by_count=by_count)
    return Submitted("refused", message=message or f"qsub returned {code}")


def parse_status(job_ids: Sequence[str], answers: Sequence[Answer], observe: Observe) -> dict[str, Observation]:
    """One observation for each of ``job_ids`` that an answer has a record of, or says it does not know.

    A record beats the word that a job is unknown or finished: which of them comes depends on the server's history.
    """
    found: dict[str, Observation] = {}
    for answer in answers:
        for job_id, native in _without_record(answer.stderr):
            found.setdefault(short_id(job_id), Observation(job_id=job_id, state=None, native_state=native))
    for answer in answers:
        for job_id, record in records(answer.stdout):
            observation = observe(job_id, record)
            if observation is not None and _is_news(found.get(short_id(job_id)), observation):
                found[short_id(job_id)] = observation
    return told(job_ids, found)


def told(job_ids: Sequence[str], found: Mapping[str, Observation]) -> dict[str, Observation]:
    """What is known of ``job_ids`` from observations by their :func:`short_id`."""
    asked = {
        job_id: _of_element(found.get(short_id(job_id)), found.get(short_id(array_id(job_id)))) for job_id in job_ids
    }
    return {job_id: seen.model_copy(update={"job_id": job_id}) for job_id, seen in asked.items() if seen is not None}


def _of_element(element: Observation | None, array: Observation | None) -> Observation | None:
    """What is known of an element, completed by what is said of its array alone: that it is unknown or has ended
    (then an element without a record of its own is unknown too), and why it can never run."""
    if element is None:
        gone = array is not None and (array.state is None or array.state.ended)
        return array.model_copy(update={"state": None}) if gone and array is not None else None
    if array is not None and array.never_runnable and element.state is JobState.QUEUED:
        return element.model_copy(update={"never_runnable": True, "reason": array.reason})
    return element


def _is_news(old: Observation | None, new: Observation) -> bool:
    """Of two records of one job the one further on counts: it was read later, or from the history."""
    if old is None or old.state is None:
        return True
    return new.state is not None and new.state.rank > old.state.rank


def _without_record(stderr: str) -> Iterator[tuple[str, str]]:
    for match in _UNKNOWN.finditer(stderr):
        yield match[1], "unknown"
    for match in _FINISHED.finditer(stderr):
        yield match[1], "finished"


def short_id(job_id: str) -> str:
    """The number with its brackets: commands print ids with the server's name, people write them without."""
    return job_id.partition(".")[0]


def find_argv(user: str) -> list[str]:
    """The ids of the user's jobs on the first line, then their ``qstat -f`` records.

    The tables of ``qstat -u`` cut names short, so names are read from the full records.
    """
    script = 'set -f; ids=$(qselect -u "$1") || exit; echo ids $ids; [ -z "$ids" ] || exec qstat -f $ids'
    return ["sh", "-c", script, "sh", user]


def parse_find(answer: Answer, observe: Observe) -> list[Observation] | None:
    """None unless every id of the list has a record or is said to have gone meanwhile."""
    if answer.returncode != 0 and answer.returncode not in _SOME_GONE:
        return None
    first, _, rest = answer.stdout.partition("\n")
    if not first.startswith("ids"):
        return None
    seen = {short_id(job_id): observe(job_id, record) for job_id, record in records(rest)}
    gone = {short_id(job_id) for job_id, _ in _without_record(answer.stderr)}
    expected = {short_id(job_id) for job_id in first.split()[1:]}
    observations = [seen[key] for key in sorted(expected & seen.keys())]
    if expected - seen.keys() - gone or None in observations:
        return None
    return [observation for observation in observations if observation is not None]


def elements(record: Record) -> int:
    """Jobs that a record stands for: an array's that have not ended (``Queued:3 Running:2 Exiting:0 Expired:5``)."""
    counts = dict(re.findall(r"(\w+):(\d+)", record.get("array_state_count", "")))
    return max(1, sum(int(number) for name, number in counts.items() if name != "Expired"))


def records(text: str) -> Iterator[tuple[str, Record]]:
    """The jobs in an answer of ``qstat -f``."""
    starts = list(_TEXT_RECORD.finditer(text))
    for number, match in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        if record := _text_attributes(text[match.end() : end]):
            yield match[1], record


def _text_attributes(block: str) -> dict[str, str]:
    """``    name = value`` lines; a value goes on in lines that begin with a tab."""
    record: dict[str, str] = {}
    for line in block.replace("\n\t", "").split("\n"):
        if match := _TEXT_ATTRIBUTE.match(line):
            record.setdefault(match[1], match[2])
    return record
