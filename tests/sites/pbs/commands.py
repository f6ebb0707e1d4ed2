"""qsub, qstat, qdel, qselect, qrls, pbsnodes: what each does with the server's jobs."""

from __future__ import annotations

import asyncio
import getopt
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sites.pbs import answers, options, resources, survey, torque
from sites.pbs.jobs import HELD, Job, Unit
from sites.pbs.options import RANGE, Request
from sites.pbs.words import Rejected, Reply, illegal_value

if TYPE_CHECKING:
    from sites.pbs.server import Server

# qsub


async def qsub(server: Server, command: Mapping[str, Any]) -> Reply:
    """Queue a job, or refuse it; ``late`` faults queue it some time after, with the caller waiting or long gone."""
    letters = torque.LETTERS if server.is_torque else options.LETTERS
    request = options.from_command_line(command["argv"], letters)
    name, script = _script(request, command)
    if script is None:
        return Reply(send_stdin=True)
    if request.operands[:1] != ["--"]:
        request.add_missing(options.from_script(script, letters))
    variables = _variables(request, command, server)
    needs = _check(server, request, command)
    if late := server.fault("late", "qsub"):
        await asyncio.sleep(late.get("seconds", 0))
        while "until" in late and not Path(late["until"]).exists():
            await asyncio.sleep(0.02)
    job = Job(
        number=next(server.numbers),
        name=request.values.get("N", name),
        user=command["user"],
        home=str(server.host.home),
        cwd=command["cwd"],
        queue=_queue(server, request),
        request=request,
        needs=needs,
        script=script,
        variables=variables,
        arguments=" ".join(command["argv"]),
        units=_units(request),
        throttle=_throttle(request),
        held="h" in request.values or "depend" in request.attributes,
    )
    if job.held:
        for unit in job.units.values():
            unit.become("H", HELD)
    server.add(job)
    if request.attributes.get("block") == "true":
        while not job.ended:
            await asyncio.sleep(0.05)
        return Reply(f"{job.id}\n", "", (job.units[None].exit_status or 0) & 255)
    return Reply("" if "z" in request.values else f"{job.id}\n")


def _script(request: Request, command: Mapping[str, Any]) -> tuple[str, str | None]:
    """Default job name and script text; the text is None while stdin has still to be read."""
    if request.operands[:1] == ["--"]:
        words = request.operands[1:]
        return Path(words[0]).name, "exec " + " ".join(_quoted(word) for word in words) + "\n"
    if not request.operands or request.operands == ["-"]:
        return "STDIN", command["stdin"]
    path = Path(command["cwd"]) / request.operands[0]
    if path.is_dir():
        raise Rejected("script not a file\n", 1)
    if not path.exists():
        raise Rejected("script file:: No such file or directory\n", 1)
    return path.name[:15], path.read_bytes().decode("utf-8", "surrogateescape")


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _variables(request: Request, command: Mapping[str, Any], server: Server) -> dict[str, str]:
    environment: dict[str, str] = command["environment"]
    found = {f"PBS_O_{name}": environment.get(name, "") for name in ("HOME", "LANG", "LOGNAME", "PATH", "SHELL")}
    found |= {"PBS_O_INTERACTIVE_AUTH_METHOD": "resvport", "PBS_O_INTERACTIVE_ENCRYPT_METHOD": ""}
    found |= {"PBS_O_WORKDIR": command["cwd"], "PBS_O_SYSTEM": "Linux"}
    if "V" in request.values:
        found |= {name: value for name, value in environment.items() if name not in ("PATH", "HOME", "_")}
    if "v" in request.values:
        found |= options.variables(request.values["v"], environment)
    return found | {"PBS_O_QUEUE": _queue(server, request), "PBS_O_HOST": server.settings.name}


def _queue(server: Server, request: Request) -> str:
    return request.values.get("q", server.settings.default_queue)


def _check(server: Server, request: Request, command: Mapping[str, Any]) -> resources.Needs:
    """What the server looks at before it queues a job, in its order."""
    settings = server.settings
    if settings.reject_root and command["uid"] == 0:
        raise Rejected("Bad UID for job execution", 175)
    if "J" in request.values and request.values.get("r") == "n":
        raise Rejected(f" cannot submit non-rerunable Array Job\n{options.USAGE}", 2)
    if server.is_torque:
        needs = _check_torque(server, request)
    else:
        needs = resources.understand(request.resources, settings.labels, settings.strings)
    if "/" in request.values.get("P", ""):
        raise illegal_value("project")
    if "group_list" in request.attributes:
        raise Rejected("Bad GID for job execution", 197)
    name = _queue(server, request)
    if name not in settings.queues:
        raise Rejected("Unknown queue", 170)
    queue = settings.queue(name)
    if not queue.enabled:
        raise Rejected("Queue is not enabled", 173)
    _hook(queue.hook, request)
    if queue.max_ncpus and sum(chunk.counts["ncpus"] for chunk in needs.chunks) > queue.max_ncpus:
        raise Rejected("Job violates queue and/or server resource limits", 188)
    if queue.max_walltime_s and (needs.walltime_s or 0) > queue.max_walltime_s:
        raise Rejected("Job violates queue and/or server resource limits", 188)
    units = _units(request)
    if len(units) > settings.max_array_size:
        raise Rejected("Array job exceeds server or queue size limit", 3)
    if queue.per_user is not None:
        active = sum(job.active for job in server.jobs.values() if job.queue == name and job.user == command["user"])
        if active + len(units) > queue.per_user:
            raise Rejected("would exceed queue generic's per-user limit", 38)
    return needs


def _check_torque(server: Server, request: Request) -> resources.Needs:
    """Torque refuses at once what no node could ever hold, and names longer than 15 characters."""
    if len(request.values.get("N", "")) > torque.MAX_NAME:
        raise Rejected("illegal -N value", 2)
    needs = torque.understand(request.resources)
    if resources.fits_never(needs, server.nodes):
        raise Rejected(torque.NOT_FEASIBLE, 188)
    return needs


def _hook(asked: bool, request: Request) -> None:
    if not asked:
        return
    if not request.values.get("A"):
        raise Rejected("Account_Name is required to be set.", 32)
    for name in ("walltime", "filesystems"):
        if name not in request.resources:
            raise Rejected(f"Resource_List.{name} is required to be set.", 32)


def _units(request: Request) -> dict[int | None, Unit]:
    if "t" in request.values:
        return {index: Unit(index) for index in torque.indices(request.values["t"])}
    match = RANGE.fullmatch(request.values.get("J", ""))
    if not match:
        return {None: Unit(None)}
    indices = range(int(match[1]), int(match[2]) + 1, int(match[3] or 1))
    return {index: Unit(index) for index in indices}


def _throttle(request: Request) -> int | None:
    text = request.values.get("J", request.values.get("t", "")).partition("%")[2]
    return int(text) if text else None


# qstat


async def qstat(server: Server, command: Mapping[str, Any]) -> Reply:
    """Describe jobs; what cannot be answered goes to stderr, the rest is answered all the same."""
    flags, ids = getopt.gnu_getopt(command["argv"], "aefF:hHinpqQrRsStT:u:wxBEG")
    given = {name[1:]: value for name, value in flags}
    if "B" in given or "Q" in given:
        return Reply(survey.servers(server) if "B" in given else survey.queues(server))
    # Torque shows ended jobs for a while without being asked
    history, expand = "x" in given or "H" in given or server.is_torque, "t" in given
    found: dict[str, answers.Attributes] = {}
    errors, code = "", 0
    if not ids:
        chosen = [job for job in server.jobs.values() if not job.forgotten and (history or not job.ended)]
        ids = [job.id for job in chosen if given.get("u", job.user) == job.user]
    for text in ids:
        try:
            found |= _described(server, text, history, expand)
        except Rejected as refusal:
            errors += f"qstat: {server.worded(refusal.message)}\n"
            code = refusal.returncode
    return Reply(_formatted(server, found, given), errors, code)


def _described(server: Server, text: str, history: bool, expand: bool) -> dict[str, answers.Attributes]:
    job, units = server.find(text)
    full = job.id if units is None else f"{text.partition('.')[0]}.{server.settings.name}"
    if job.ended and not server.settings.history:
        if history:
            raise Rejected(f"PBS is not configured to maintain job history {full}", 0)
        raise Rejected(f"Unknown Job Id {full}", 153)
    if job.ended and not history:
        raise Rejected(f"{full} Job has finished, use -x or -H to obtain historical job information", 35)
    if units is not None:
        return {job.unit_id(unit): server.describe(job, unit) for unit in units}
    found = {job.id: server.describe(job, None)}
    if expand and job.is_array:
        found |= {job.unit_id(unit): server.describe(job, unit) for unit in job.units.values()}
    return found


def _formatted(server: Server, found: Mapping[str, answers.Attributes], given: Mapping[str, str]) -> str:
    if server.is_torque and "x" in given:
        return torque.as_xml(found)
    if "f" not in given:
        return answers.as_table(found.items())
    if given.get("F") != "json":
        return answers.as_text(found)
    if fault := server.fault("broken_json", "qstat"):
        return _broken(found, fault["how"])
    return answers.as_json(found, server.settings.json_style)


def _broken(found: Mapping[str, answers.Attributes], how: str) -> str:
    """Ways in which real servers' JSON was seen broken or incomplete, and one cut short."""
    text = answers.as_json(dict(list(found.items())[:1]) if how == "first_only" else found, "new")
    if how == "first_only":
        return text
    if how == "cut":
        return text[: len(text) * 2 // 3]
    replacement = {"backslash": '"DOM\\user"', "nan": "nan", "dot": "1.", "raw_byte": '"\udcff"'}[how]
    return text.replace('"project":', f'"Account_Name":\t{replacement},\n\t\t\t"project":')


# qdel and the others


async def qdel(server: Server, command: Mapping[str, Any]) -> Reply:
    flags, ids = getopt.gnu_getopt(command["argv"], "W:x")
    given = {name[1:]: value for name, value in flags}
    errors, code = "", 0
    for text in ids:
        try:
            job, units = server.find(text)
            if job.ended:
                if server.is_torque:
                    raise Rejected(
                        f"Request invalid for state of job MSG=invalid state for job - COMPLETE {job.id}", 170
                    )
                if "x" not in given:
                    raise Rejected(f"Job has finished {job.id}", 35)
                job.forgotten = True
            server.delete(job, units, force=given.get("W") == "force")
        except Rejected as refusal:
            errors += f"qdel: {server.worded(refusal.message)}\n"
            code = refusal.returncode
    server.schedule()
    return Reply("", errors, code)


async def qselect(server: Server, command: Mapping[str, Any]) -> Reply:
    flags, _ = getopt.gnu_getopt(command["argv"], "N:u:s:q:x")
    given = {name[1:]: value for name, value in flags}
    lines = [
        f"{job.id}\n"
        for job in server.jobs.values()
        if not job.forgotten
        and ("x" in given or server.is_torque or not job.ended)
        and given.get("N", job.name) == job.name
        and given.get("q", job.queue) == job.queue
        and job.user in given.get("u", job.user).split(",")
        and job.state in given.get("s", job.state)
    ]
    return Reply("".join(lines))


async def qrls(server: Server, command: Mapping[str, Any]) -> Reply:
    """Release a job that its user holds."""
    for text in command["argv"]:
        job, _ = server.find(text)
        job.held = False
        job.request.values.pop("h", None)
        for unit in job.units.values():
            if unit.state == "H":
                unit.become("Q", 10)
    server.schedule()
    return Reply()


async def pbsnodes(server: Server, command: Mapping[str, Any]) -> Reply:
    return Reply(survey.nodes(server))


COMMANDS: dict[str, Callable[[Any, Mapping[str, Any]], Awaitable[Reply]]] = {
    "qsub": qsub,
    "qstat": qstat,
    "qdel": qdel,
    "qselect": qselect,
    "qrls": qrls,
    "pbsnodes": pbsnodes,
}
