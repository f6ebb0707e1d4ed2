"""Torque's dialect of the fake: what it asks and answers differently from OpenPBS.

No transcripts of a real Torque stand behind this; it follows the manual (Torque 6: qsub, qstat, pbs_server) and the
texts of its sources' pbs_error.db.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from sites.pbs.answers import Attributes, date
from sites.pbs.jobs import Job, Unit
from sites.pbs.resources import Chunk, Needs, clock, seconds, size_kb
from sites.pbs.words import SERVER, Rejected

LETTERS = "a:A:b:c:C:d:e:fhIj:k:l:m:M:nN:o:p:P:q:r:S:t:u:v:VW:xXz"
MAX_NAME = 15
NODES = re.compile(r"(\d+)((?::(?:ppn|gpus|mics)=\d+|:[A-Za-z]\w*)*)")
NOT_FEASIBLE = (
    "Job exceeds queue resource limits MSG=cannot locate feasible nodes "
    "(nodes file is empty, all systems are busy, or no nodes have the requested feature)"
)


def indices(text: str) -> list[int]:
    """``0-3,7%2`` → 0 … 3, 7."""
    found: list[int] = []
    for part in text.partition("%")[0].split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def understand(requested: Mapping[str, str]) -> Needs:
    """``nodes=N:ppn=M:gpus=G`` and job-wide ``mem``; a plain ``ncpus`` is one node's."""
    match = NODES.fullmatch(requested.get("nodes", f"1:ppn={requested.get('ncpus', '1')}"))
    if not match:
        raise Rejected("cannot find requested nodes", 188)
    number, words = int(match[1]), dict(word.partition("=")[::2] for word in match[2].split(":")[1:])
    counts = {"ncpus": int(words.get("ppn", 1)), "mpiprocs": int(words.get("ppn", 1))}
    if "gpus" in words:
        counts["ngpus"] = int(words["gpus"])
    if "mem" in requested:
        counts["mem"] = size_kb(requested["mem"], "Resource_List.mem") // number
    walltime_s = seconds(requested["walltime"], "walltime") if "walltime" in requested else None
    listed: dict[str, str | int] = {name: requested[name] for name in ("mem", "nodes") if name in requested}
    listed["nodect"] = number
    if walltime_s is not None:
        listed["walltime"] = clock(walltime_s)
    return Needs((Chunk(counts, {}),) * number, "scatter", walltime_s, dict(sorted(listed.items())))


def variables(job: Job, unit: Unit) -> dict[str, str]:
    """What the jobs' environment has beside what both dialects set."""
    first = job.needs.chunks[0].counts["ncpus"]
    nodes = len(job.needs.chunks)
    found = {"PBS_NUM_NODES": str(nodes), "PBS_NUM_PPN": str(first), "PBS_NP": str(nodes * first)}
    return found if unit.index is None else found | {"PBS_ARRAYID": str(unit.index)}


def describe(job: Job, unit: Unit | None) -> Attributes:
    """The attributes of a job or array element in the order of Torque's qstat -f."""
    subject = unit or (None if job.is_array else job.units[None])
    values = job.request.values
    found: Attributes = {"Job_Name": job.name if unit is None or unit.index is None else f"{job.name}-{unit.index}"}
    found["Job_Owner"] = f"{job.user}@{SERVER}"
    ended_s = subject.ended_s if subject else None
    if subject and subject.began_s and ended_s:
        used = {"cput": "00:00:00", "mem": "0kb", "vmem": "0kb", "walltime": clock(ended_s - subject.began_s)}
        found["resources_used"] = used
    found |= {"job_state": _letter(job, unit), "queue": job.queue, "server": SERVER}
    if values.get("A"):
        found["Account_Name"] = values["A"]
    found |= {"Checkpoint": "u", "ctime": date(job.created_s), "Error_Path": job.output("e", unit)}
    if subject and subject.nodes:
        found["exec_host"] = "+".join(_slots(job.needs.chunks, [node.name for node in subject.nodes]))
    found |= {"Hold_Types": "u" if job.held else "n", "Join_Path": values.get("j", "n"), "Keep_Files": "n"}
    found |= {"Mail_Points": values.get("m", "a"), "mtime": date(subject.changed_s if subject else job.created_s)}
    found |= {"Output_Path": job.output("o", unit), "Priority": 0, "qtime": date(job.created_s)}
    found |= {"Rerunable": values.get("r") != "n", "Resource_List": dict(job.needs.listed)}
    if subject and subject.session_id:
        found["session_id"] = subject.session_id
    found |= {"Variable_List": dict(job.variables), "euser": job.user, "egroup": job.user, "etime": date(job.created_s)}
    if subject and subject.exit_status is not None:
        found["exit_status"] = _exit_status(subject.exit_status)
    found["submit_args"] = job.arguments
    if subject and subject.index is not None:
        found["job_array_id"] = subject.index
    return found | {"fault_tolerant": False, "job_radix": 0, "submit_host": SERVER}


def _letter(job: Job, unit: Unit | None) -> str:
    letter = unit.state if unit else job.state
    return {"F": "C", "B": "R"}.get(letter, letter)


def _exit_status(status: int) -> int:
    """A job over its walltime is ended by TERM, like a deleted one: only the time it used tells them apart."""
    return 271 if status == -29 else status


def _slots(chunks: Sequence[Chunk], names: Sequence[str]) -> list[str]:
    return [f"{name}/0-{chunk.counts['ncpus'] - 1}" for chunk, name in zip(chunks, names, strict=True)]


def as_xml(jobs: Mapping[str, Attributes]) -> str:
    """``qstat -x``: Torque's XML, one line."""
    data = ElementTree.Element("Data")
    for job_id, attributes in jobs.items():
        element = ElementTree.SubElement(data, "Job")
        ElementTree.SubElement(element, "Job_Id").text = job_id
        for name, value in attributes.items():
            child = ElementTree.SubElement(element, name)
            if isinstance(value, Mapping) and name != "Variable_List":
                for key, cell in value.items():
                    ElementTree.SubElement(child, key).text = str(cell)
            elif isinstance(value, Mapping):
                child.text = ",".join(f"{key}={cell}" for key, cell in value.items())
            else:
                child.text = str(value)
    return ElementTree.tostring(data, encoding="unicode") + "\n"
