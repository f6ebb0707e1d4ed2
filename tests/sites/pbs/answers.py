"""qstat's answers: a job's attributes in qstat's order, as JSON of two versions, as text, and as the short table."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping

from sites.pbs.jobs import Job, Unit
from sites.pbs.resources import clock
from sites.pbs.words import SERVER, VERSION

Attributes = dict[str, object]
LINE_WIDTH = 79
TABLE_HEAD = (
    "Job id            Name             User              Time Use S Queue\n"
    "----------------  ---------------- ----------------  -------- - -----\n"
)


def date(unix_s: float) -> str:
    return time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(unix_s))


def describe(job: Job, unit: Unit | None) -> Attributes:
    """The attributes of a job, or of one unit of an array (``unit``), in qstat's order."""
    subject = unit or (None if job.is_array else job.units[None])
    whole, ended = unit is None, unit.ended if unit else job.ended
    found: Attributes = {"Job_Name": job.name, "Job_Owner": f"{job.user}@{SERVER}"}
    if subject and subject.began_s:
        found["resources_used"] = _used(job, subject)
    found |= {"job_state": _letter(job, unit), "queue": job.queue, "server": SERVER}
    values = job.request.values
    if values.get("A"):
        found["Account_Name"] = values["A"]
    if whole:
        found["Checkpoint"] = "u"
    found["ctime"] = date(job.created_s)
    if "depend" in job.request.attributes:
        found["depend"] = re.sub(
            r"(\d+(?:\[\])?)(?:\.\w+)?", rf"\1.{SERVER}@{SERVER}", job.request.attributes["depend"]
        )
    found["Error_Path"] = job.output("e", unit)
    if subject and subject.nodes:
        found |= _where(job, subject)
    if whole:
        found["Hold_Types"] = ("u" if "h" in values else "s") if job.held else "n"
    found |= {"Join_Path": values.get("j", "n"), "Keep_Files": values.get("k", "n"), "Mail_Points": "a"}
    found["mtime"] = date(subject.changed_s if subject else max(u.changed_s for u in job.units.values()))
    found |= {"Output_Path": job.output("o", unit), "Priority": 0, "qtime": date(job.created_s)}
    found |= {"Rerunable": "False" if values.get("r") == "n" else "True", "Resource_List": dict(job.needs.listed)}
    found |= _course(job, subject, whole, ended)
    found["project"] = values.get("P", "_pbs_project_default")
    found["Submit_Host"] = SERVER
    return found


def _letter(job: Job, unit: Unit | None) -> str:
    if unit and unit.ended and not job.ended:
        return "X"
    return unit.state if unit else job.state


def _used(job: Job, unit: Unit) -> Attributes:
    assert unit.began_s is not None
    walltime = clock((unit.ended_s or time.time()) - unit.began_s)
    ncpus = sum(chunk.counts["ncpus"] for chunk in job.needs.chunks)
    return {"cpupercent": 0, "cput": "00:00:00", "mem": "0kb", "ncpus": ncpus, "vmem": "0kb", "walltime": walltime}


def exec_vnode(job: Job, unit: Unit) -> str:
    parts = []
    for chunk, node in zip(job.needs.chunks, unit.nodes, strict=True):
        counts = [
            f"{k}={v}{'kb' if k == 'mem' else ''}" for k, v in chunk.counts.items() if k in ("ncpus", "mem", "ngpus")
        ]
        parts.append(f"({':'.join([node.name, *counts])})")
    return "+".join(parts)


def _where(job: Job, unit: Unit) -> Attributes:
    hosts = []
    for chunk, node in zip(job.needs.chunks, unit.nodes, strict=True):
        cpus = chunk.counts["ncpus"]
        hosts.append(f"{node.name}/0" + (f"*{cpus}" if cpus > 1 else ""))
    return {"exec_host": "+".join(hosts), "exec_vnode": exec_vnode(job, unit)}


def _course(job: Job, subject: Unit | None, whole: bool, ended: bool) -> Attributes:
    """What happened to the job or unit: times, substate, environment, comment, exit."""
    found: Attributes = {}
    began = [unit.began_s for unit in job.units.values() if unit.began_s]
    if subject and subject.began_s:
        found["stime"] = date(subject.began_s)
    elif not subject and began:
        found["stime"] = date(min(began))
    if ended and (began if not subject else subject.began_s):
        found["obittime"] = date(subject.ended_s if subject and subject.ended_s else time.time())
    if subject and subject.session_id:
        found["session_id"] = subject.session_id
    if subject and subject.began_s:
        found["jobdir"] = job.home
    found["substate"] = subject.substate if subject else (92 if ended else 70 if began else 10)
    found["Variable_List"] = dict(job.variables)
    comment = subject.comment if subject else _array_comment(began, ended)
    if comment:
        found["comment"] = comment
    if not job.held:
        found["etime"] = date(job.created_s)
    if subject and subject.run_count:
        found["run_count"] = subject.run_count
    status = subject.exit_status if subject else 0 if ended and began else None
    if ended and status is not None:
        found |= {"Stageout_status": int(subject.staged) if subject else 1, "Exit_status": status}
    if whole:
        found["Submit_arguments"] = job.arguments
        if job.is_array:
            found |= _array(job)
    elif subject:
        found |= {"array_id": job.id, "array_index": subject.index}
    if ended:
        found["history_timestamp"] = int(subject.changed_s if subject else time.time())
    return found


def _array_comment(began: list[float], ended: bool) -> str:
    if not began:
        return ""
    at = time.localtime(min(began))
    return f"Job Array Began at {time.strftime('%a %b %d at %H:%M', at)}" + (" and finished" if ended else "")


def _array(job: Job) -> Attributes:
    states = [unit.state for unit in job.units.values()]
    counts = {"Queued": states.count("Q"), "Running": states.count("R"), "Exiting": states.count("E")}
    counts["Expired"] = 0 if job.ended else states.count("F")
    waiting = [index for index, unit in job.units.items() if unit.state == "Q" and index is not None]
    return {
        "array": "True",
        "array_state_count": " ".join(f"{name}:{number}" for name, number in counts.items()),
        "array_indices_submitted": job.request.values["J"].partition("%")[0],
        "array_indices_remaining": ranges(waiting) or "-",
    }


def ranges(numbers: Iterable[int]) -> str:
    """``0-2,5``: sorted numbers as PBS lists them."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


# formats


def as_json(jobs: Mapping[str, Attributes], style: str = "new") -> str:
    """``new``: cJSON's layout. ``old``: version 23.06.06's own encoder with its faults (no escapes, bare words)."""
    document: Attributes = {"timestamp": int(time.time()), "pbs_version": VERSION, "pbs_server": SERVER}
    if jobs:
        document["Jobs"] = jobs
    if style == "old":
        return _old(document, 1) + "\n"
    return _new(document, 1) + "\n"


def _new(value: object, depth: int, name: str = "") -> str:
    if isinstance(value, Mapping):
        pad = "\t" * depth
        inner = ",\n".join(f'{pad}"{k}":\t{_new(v, depth + 1, name or k)}' for k, v in _cells(value, name))
        return "{\n" + inner + "\n" + "\t" * (depth - 1) + "}"
    return json.dumps(value, ensure_ascii=False)


def _cells(value: Mapping[str, object], name: str) -> Iterable[tuple[str, object]]:
    """Variables whose text is a number or a truth value appear as such."""
    for key, cell in value.items():
        yield key, _bare(cell) if isinstance(cell, str) and key.isupper() and not key.startswith("PBS_") else cell


def _bare(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", text):
        number = float(text)
        return int(number) if number.is_integer() else number
    return text


def _old(value: object, depth: int) -> str:
    if isinstance(value, Mapping):
        pad = "    " * depth
        cells = _swallow(value)
        inner = ",\n".join(f'{pad}"{k}":{_old(v, depth + 1)}' for k, v in cells)
        return "{\n" + inner + "\n" + "    " * (depth - 1) + "}"
    text = str(value)
    if isinstance(value, int) or re.fullmatch(r"-?(0|[1-9]\d*)(\.\d*)?|nan|true|false", text):
        return text
    return '"' + text.replace('"', '\\"') + '"'


def _swallow(value: Mapping[str, object]) -> list[tuple[str, object]]:
    """An empty variable takes the next one into its value."""
    cells: list[tuple[str, object]] = []
    items = iter(value.items())
    for key, cell in items:
        following = next(items, None) if cell == "" else None
        cells.append((key, f",{following[0]}={following[1]}" if following else cell))
    return cells


def as_text(jobs: Mapping[str, Attributes]) -> str:
    """Plain ``qstat -f``: ``name = value`` lines, long ones folded after commas with a tab."""
    blocks = []
    for job_id, attributes in jobs.items():
        lines = [f"Job Id: {job_id}"]
        for name, value in attributes.items():
            if name == "Variable_List" and isinstance(value, Mapping):
                lines.append(fold(name, ",".join(f"{k}={v}" for k, v in value.items())))
            elif isinstance(value, Mapping):
                lines += [fold(f"{name}.{key}", str(cell)) for key, cell in value.items()]
            else:
                lines.append(fold(name, str(value)))
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)


def fold(name: str, value: str) -> str:
    """One attribute's lines: a break falls after a comma, or within a word that is longer than a line."""
    lines, line = [], f"    {name} = "
    for word in re.findall(r"[^,]*,|[^,]+$", value):
        limit = LINE_WIDTH - (7 if lines else 0)
        if len(line) + len(word) > limit and line.strip() != f"{name} =":
            lines.append(line)
            line = "\t"
            limit = LINE_WIDTH - 7
        line += word
        while len(line) > limit:
            lines.append(line[:limit])
            line, limit = "\t" + line[limit:], LINE_WIDTH - 7
    return "\n".join([*lines, line])


def as_table(rows: Iterable[tuple[str, Attributes]]) -> str:
    lines = []
    for job_id, found in rows:
        used = found.get("resources_used")
        took = used["cput"] if isinstance(used, Mapping) else "0"
        user = str(found["Job_Owner"]).partition("@")[0]
        name, queue = str(found["Job_Name"])[:15], str(found["queue"])
        lines.append(f"{job_id:<17} {name:<16} {user:<16}  {took:>8} {found['job_state']} {queue:<16}\n")
    return TABLE_HEAD + "".join(lines) if lines else ""
