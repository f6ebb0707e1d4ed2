"""The fake server, scheduler and mom in one process: requests come over a Unix socket, jobs really run.

Everything that happens to a job is appended to ``audit.jsonl`` (event, job id, name, time): what the server saw, to
hold against what the harness believes.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sites import processes
from sites.pbs import answers, resources, torque
from sites.pbs.commands import COMMANDS
from sites.pbs.execution import Host, begin, execute, terminate
from sites.pbs.jobs import FINISHED, TERMINATED, Job, Unit
from sites.pbs.resources import Node
from sites.pbs.settings import Settings
from sites.pbs.words import Rejected, Reply, server_down, unknown_job


class Server:
    """State of the site: jobs by number, faults still to strike, settings that tests may change while it runs."""

    def __init__(self, base: Path, settings: Settings):
        self.base = base
        self.settings = settings
        self.jobs: dict[int, Job] = {}
        self.numbers = itertools.count(1)
        self.faults: list[dict[str, Any]] = []
        self.random = random.Random(settings.seed)
        self.tasks: set[asyncio.Task[None]] = set()
        self.host = Host(
            base,
            base / "home",
            settings.path,
            settings.kill_delay_s,
            settings.own_hostnames,
            marker=str(base),
            torque=self.is_torque,
        )
        for name in ("spool", "aux", "tmp", "home"):
            (base / name).mkdir(exist_ok=True)

    @property
    def is_torque(self) -> bool:
        return self.settings.dialect == "torque"

    def describe(self, job: Job, unit: Unit | None) -> answers.Attributes:
        return torque.describe(job, unit) if self.is_torque else answers.describe(job, unit)

    def worded(self, message: str) -> str:
        return message.replace("Unknown Job Id ", "Unknown Job Id Error ") if self.is_torque else message

    # requests

    async def answer(self, request: Mapping[str, Any]) -> Reply:
        """The reply to one command, faults included."""
        command = request["command"]
        if command == "control":
            return self._control(request)
        with (self.base / "commands.jsonl").open("a") as stream:
            stream.write(json.dumps({"command": command, "argv": request["argv"]}) + "\n")
        if self.settings.down or self.fault("down", command):
            return server_down(command, answers.as_json({}) if "-F" in request["argv"] else "")
        if hang := self.fault("hang_before", command):
            await asyncio.sleep(hang["seconds"])
        try:
            reply = await COMMANDS[command](self, request)
        except Rejected as refusal:
            text = refusal.message.rstrip("\n") if command != "qsub" else refusal.message
            reply = Reply("", f"{command}: {text}".rstrip("\n") + "\n", refusal.returncode)
        if reply.send_stdin:
            return reply
        if hang := self.fault("hang_after", command):
            reply.delay_s = hang["seconds"]
        if self.fault("client_killed", command):
            reply = Reply(killed=True)
        return reply

    def fault(self, kind: str, command: str = "") -> dict[str, Any] | None:
        """The next fault of this kind for this command, counted down; None where there is none left."""
        for fault in self.faults:
            if fault["kind"] == kind and fault.get("command", command) == command and fault["times"] > 0:
                fault["times"] -= 1
                return fault
        return None

    def _control(self, request: Mapping[str, Any]) -> Reply:
        """Orders of the tests: inject a fault, change a setting, forget jobs, tell everything."""
        verb, value = request["argv"][0], request["value"]
        if verb == "inject":
            self.faults.append(value)
        elif verb == "set":
            self.settings = self.settings.changed(**value)
            self.schedule()
        elif verb == "forget":
            for job in self.jobs.values():
                if not value or str(job.number) in value:
                    job.forgotten = True
        elif verb == "kill":
            self._kill_some(value)
        elif verb == "expire":
            for _, unit in self.units("R"):
                self._keep(asyncio.create_task(terminate(self.host, unit, "walltime")))
        return Reply(json.dumps([self._told(job) for job in self.jobs.values()]))

    @staticmethod
    def _told(job: Job) -> dict[str, Any]:
        units = [
            {"id": job.unit_id(u), "state": u.state, "exit_status": u.exit_status, "run_count": u.run_count}
            for u in job.units.values()
        ]
        return {"id": job.id, "name": job.name, "state": job.state, "comment": _comment(job), "units": units}

    def _kill_some(self, share: float) -> None:
        """kill -9 of a share of the running scripts, as the kernel does when memory runs out."""
        for _, unit in self.units("R"):
            if unit.session_id and self.random.random() < share:
                processes.send(
                    [p for p in processes.in_session(unit.session_id) if p != unit.session_id], signal.SIGKILL
                )

    def audit(self, event: str, job: Job, unit: Unit | None = None, **facts: Any) -> None:
        record = {"event": event, "id": job.unit_id(unit) if unit else job.id, "name": job.name, **facts}
        with (self.base / "audit.jsonl").open("a") as stream:
            stream.write(json.dumps({"unix_s": round(time.time(), 3), **record}) + "\n")

    # jobs

    def units(self, *states: str) -> list[tuple[Job, Unit]]:
        return [(job, unit) for job in self.jobs.values() for unit in job.units.values() if unit.state in states]

    def find(self, text: str) -> tuple[Job, list[Unit] | None]:
        """A job by its id; the units meant, or None for the job as a whole. Rejects what it does not know."""
        match = re.fullmatch(r"(\d+)(\[([\d,-]*)\])?(?:\.(\w+))?", text)
        if not match or match[4] not in (None, self.settings.name):
            raise Rejected(f"illegally formed job identifier: {text}", 1)
        full = text if match[4] else f"{text}.{self.settings.name}"
        job = self.jobs.get(int(match[1]))
        if job is None or job.forgotten or job.is_array != bool(match[2]):
            raise unknown_job(full)
        if not match[3]:
            return job, None
        first, _, last = match[3].partition("-")
        wanted = range(int(first), int(last or first) + 1)
        units = [unit for index, unit in job.units.items() if index in wanted]
        if not units:
            raise unknown_job(full)
        return job, units

    def add(self, job: Job) -> None:
        self.jobs[job.number] = job
        self.audit("queued", job)
        self.schedule()

    def end_without_running(self, job: Job, unit: Unit, substate: int) -> None:
        unit.become("F", substate)
        self.audit("deleted", job, unit)

    # scheduling

    def schedule(self) -> None:
        """Start every unit that may start now, in order of submission; say why the others wait."""
        for job in self.jobs.values():
            self._release(job)
            for unit in list(job.waiting):
                if not self._start(job, unit):
                    break

    def _release(self, job: Job) -> None:
        """Let go a job held for others (``-W depend``), or end it when what it waits for cannot come."""
        text = job.request.attributes.get("depend", "")
        if not text or job.ended or "h" in job.request.values or not job.held:
            return
        kind, *ids = text.split(":")
        others = [self.jobs.get(int(re.match(r"\d+", other)[0])) for other in ids]  # type: ignore[index]
        if any(other is not None and not other.ended for other in others):
            return
        good = [other is not None and (other.is_array or other.units[None].exit_status == 0) for other in others]
        job.held = False
        fulfilled = {"afterok": all(good), "afternotok": not any(good)}.get(kind, None not in others)
        for unit in job.units.values():
            if fulfilled:
                unit.become("Q", 10)
            else:
                job.held = True
                self.end_without_running(job, unit, 92)

    def _start(self, job: Job, unit: Unit) -> bool:
        if job.held or not self.settings.scheduling:
            return False
        if not self.settings.queue(job.queue).started:
            unit.comment = "Not Running: Queue not started."
            return False
        if never := resources.fits_never(job.needs, self.nodes):
            unit.comment = never
            return False
        running = sum(other.state in ("R", "E") for other in job.units.values())
        chosen = resources.place(job.needs, self.nodes, self._used())
        if chosen is None or job.throttle is not None and running >= job.throttle:
            unit.comment = "Not Running: Insufficient amount of resource: ncpus"
            return False
        unit.nodes = chosen
        begin(unit, answers.exec_vnode(job, unit))
        self.audit("started", job, unit)
        self._keep(asyncio.create_task(self._run(job, unit)))
        return True

    def _keep(self, task: asyncio.Task[None]) -> None:
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _run(self, job: Job, unit: Unit) -> None:
        await execute(self.host, job, unit)
        self.audit("ended", job, unit, exit_status=unit.exit_status)
        if job.ended and self.settings.forget_ended:
            job.forgotten = True
        self.schedule()

    @property
    def nodes(self) -> list[Node]:
        return [Node(**node) for node in self.settings.nodes]

    def _used(self) -> dict[str, dict[str, int]]:
        used: dict[str, dict[str, int]] = {}
        for job, unit in self.units("R", "E"):
            for chunk, node in zip(job.needs.chunks, unit.nodes, strict=True):
                for name, amount in chunk.counts.items():
                    used.setdefault(node.name, {})
                    used[node.name][name] = used[node.name].get(name, 0) + amount
        return used

    def delete(self, job: Job, units: list[Unit] | None, force: bool) -> None:
        for unit in units or list(job.units.values()):
            if unit.state == "R":
                self._keep(asyncio.create_task(terminate(self.host, unit, "force" if force else "qdel", force)))
            elif not unit.ended:
                # an element that never began is only marked as expired (OpenPBS' req_delete.c): no word of a deletion
                self.end_without_running(job, unit, TERMINATED if unit.index is None else FINISHED)

    async def close(self) -> None:
        for _, unit in self.units("R", "E"):
            if unit.session_id:
                processes.send(processes.in_session(unit.session_id), signal.SIGKILL)
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=3)


def _comment(job: Job) -> str:
    return next(iter(job.units.values())).comment


async def serve(base: Path) -> None:
    """Listen on ``base/socket`` until SIGTERM."""
    server = Server(base, Settings.load(base / "settings.json"))
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reply = await server.answer(json.loads(await reader.readline()))
        # the client may have been killed meanwhile: what it asked for stands all the same
        with contextlib.suppress(ConnectionError):
            writer.write(json.dumps(asdict(reply)).encode() + b"\n")
            await writer.drain()
            writer.close()

    listener = await asyncio.start_unix_server(connection, base / "socket", limit=1 << 26)
    (base / "pid.new").write_text(str(os.getpid()))
    (base / "pid.new").rename(base / "pid")
    async with listener:
        await stop.wait()
    (base / "socket").unlink(missing_ok=True)
    await server.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
