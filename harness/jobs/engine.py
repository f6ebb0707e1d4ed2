"""The local engine: a batch system for one machine, spoken to as the others are.

``python -m harness.jobs.engine submit|status|find|cancel`` answers as qsub, qstat and qdel would, and
``keep`` is the process that runs one job (:mod:`harness.jobs.keeper`). Only the standard library is imported, so
that asking costs little while a measurement runs.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.config import this_machine
from harness.errors import UserError, of_the_system
from harness.jobs.keeper import has_members, is_supervised, keep, stop_unsupervised
from harness.jobs.local_registry import PREFIX, REFUSED, JobDirectory, Registry, Request, State, host_of
from harness.units import format_bytes

#: seconds that a new keeper may need to say its first word, on a machine under load
KEEPER_START_S = 30.0
UNKNOWN = "UNKNOWN"


def parse_request(text: str, script: str, name: str) -> Request:
    """The request in a script's directives: the ``#LOCAL key=value`` lines before its first command.

    Raises:
        UserError: naming the line that makes no sense, or what is missing.
    """
    found: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith(f"{PREFIX} "):
            key, _, value = line[len(PREFIX) :].strip().partition("=")
            try:
                found[key] = json.loads(value)
            except ValueError:
                raise UserError(f"{script}:{number}: {line!r} is no directive; write {PREFIX} key=value") from None
    try:
        return Request(**{"output": f"{script}.log", **found, "name": name, "script": script})
    except TypeError as error:
        raise UserError(f"{script}: its {PREFIX} directives do not make a request: {error}") from None


def refuse_impossible(request: Request) -> None:
    """Refuse what can never run here, rather than queue it for ever."""
    cpus = len(os.sched_getaffinity(0))
    if not 1 <= request.cores <= cpus:
        raise UserError(f"{request.cores} cores are asked for, and this machine lends us {cpus}")
    if request.memory_bytes is not None and request.memory_bytes > this_machine.memory_bytes():
        wanted, there = format_bytes(request.memory_bytes), format_bytes(this_machine.memory_bytes())
        raise UserError(f"{wanted} of memory are asked for, and this machine has {there}")


def submit(registry: Registry, script: str, name: str) -> str:
    """Queue a script; returns the job's id once a keeper has taken the job over."""
    path = os.path.abspath(script)  # noqa: PTH100  symbolic links stay as the caller wrote them
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{script}: {error.strerror}") from None
    request = parse_request(text, path, name)
    refuse_impossible(request)
    job, keeper = _begin(registry, request)
    _await_first_word(job, keeper)
    return job.id


def _begin(registry: Registry, request: Request) -> tuple[JobDirectory, subprocess.Popen[bytes]]:
    """The job written down, and its keeper started, or nothing begun at all."""
    try:
        registry.prune(time.time())
        job = registry.new()
        job.write_request(request)
        with job.log.open("ab") as log:
            keeper = subprocess.Popen(
                [sys.executable, "-m", "harness.jobs.engine", "keep", job.id],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        raise UserError(f"the local engine keeps its jobs in {registry.root}: {of_the_system(error)}") from None
    return job, keeper


def _await_first_word(job: JobDirectory, keeper: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + KEEPER_START_S
    while job.state() is None:
        if keeper.poll() is not None:
            raise UserError(f"the job's keeper did not start:\n{job.log.read_text(errors='replace')}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"the keeper of {job.id} said nothing for {KEEPER_START_S:.0f} s; see {job.log}")
        time.sleep(0.02)


def describe(registry: Registry, job_id: str) -> dict[str, Any] | None:
    """How a job stands; None for another host's job, of which nothing can be learnt here."""
    job = registry.find(job_id)
    if job is None:
        return None if host_of(job_id) != socket.gethostname() else {"id": job_id, "state": UNKNOWN}
    request, (state, is_orphan) = job.request(), _look(job)
    record: dict[str, Any] = {"id": job_id, "state": UNKNOWN, "name": request.name if request else ""}
    if state is None or request is None:
        return record
    if is_orphan:
        return record | _describe_unsupervised(job, request, state)
    return record | {"state": state.state, "exit_status": state.exit_status, "reason": _reason(state)}


def _look(job: JobDirectory) -> tuple[State | None, bool]:
    """A job's state, and whether it goes on without its keeper."""
    state = job.state()
    if state is None or state.ended_unix_s is not None or is_supervised(state):
        return state, False
    state = job.state()  # the keeper's last word may have come between the two looks
    return state, state is not None and state.ended_unix_s is None


def _describe_unsupervised(job: JobDirectory, request: Request, state: State) -> dict[str, Any]:
    """A job whose keeper was killed: it may run on, but past its walltime nobody but us would stop it."""
    if state.state != "RUNNING" or not has_members(job, state):
        return {"reason": "its keeper was killed"}
    if time.time() > (state.started_unix_s or 0.0) + request.walltime_s:
        state = stop_unsupervised(job, state, "walltime")
    return {"state": state.state, "reason": "its keeper was killed"}


def _reason(state: State) -> str:
    if state.state == "QUEUED":
        return "waiting for free CPUs"
    return {"walltime": "stopped at its walltime", "cancel": "cancelled"}.get(state.cause, "")


def cancel(registry: Registry, job_id: str) -> None:
    """Ask for a job's end; its keeper sees to it, or we do where the keeper was killed."""
    job = registry.find(job_id)
    if job is None:
        return
    state, is_orphan = _look(job)
    if state is None or state.ended_unix_s is not None:
        return
    job.cancel.touch()
    if state.state == "RUNNING" and is_orphan:
        stop_unsupervised(job, state, "cancel")


def as_text(registry: Registry, job_ids: Iterable[str]) -> str:
    """The answer to ``status`` and ``find``."""
    records = (describe(registry, job_id) for job_id in job_ids)
    return json.dumps([record for record in records if record is not None])


def main(arguments: Sequence[str] | None = None) -> int:
    """The engine's command line; returns its exit code."""
    parser = argparse.ArgumentParser(prog="harness.jobs.engine", description="the local batch engine")
    verbs = parser.add_subparsers(dest="verb", required=True)
    submitter = verbs.add_parser("submit")
    submitter.add_argument("--name", required=True)
    submitter.add_argument("script")
    for verb in ("status", "cancel", "keep"):
        verbs.add_parser(verb).add_argument("ids", nargs="+")
    verbs.add_parser("find")
    options = parser.parse_args(arguments)
    try:
        _dispatch(Registry(), options)
    except UserError as error:
        print(error, file=sys.stderr)
        return REFUSED
    except OSError as error:  # a disk that fills up: whether the job was queued is for the caller to find out
        print(of_the_system(error), file=sys.stderr)
        return 1
    return 0


def _dispatch(registry: Registry, options: argparse.Namespace) -> None:
    if options.verb == "submit":
        print(submit(registry, options.script, options.name))
    elif options.verb == "status":
        print(as_text(registry, options.ids))
    elif options.verb == "find":
        print(as_text(registry, (job.id for job in registry.all())))
    elif options.verb == "cancel":
        for job_id in options.ids:
            cancel(registry, job_id)
    else:
        keep(registry, JobDirectory(registry.jobs / options.ids[0]))


if __name__ == "__main__":
    sys.exit(main())
