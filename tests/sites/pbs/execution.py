"""Running a unit's script as pbs_mom does: a spool copy fed to the shell, PBS variables, limits, output delivery."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from sites import processes
from sites.pbs import torque
from sites.pbs.jobs import FAILED, FINISHED, RUNNING, TERMINATED, Job, Unit
from sites.pbs.words import SERVER

TERM_STATUS, FORCE_STATUS, WALLTIME_STATUS = 256 + 15, 256 + 9, -29


@dataclass(frozen=True)
class Host:
    """Where jobs run: ``base`` holds spool, nodefiles and temporary directories; ``path`` is the jobs' PATH."""

    base: Path
    home: Path
    path: str
    kill_delay_s: float
    own_hostnames: bool
    marker: str
    torque: bool = False

    def files(self, job: Job, unit: Unit) -> tuple[Path, Path]:
        """The script's copy and the nodefile."""
        unit_id = job.unit_id(unit)
        return self.base / "spool" / f"{unit_id}.SC", self.base / "aux" / unit_id


async def execute(host: Host, job: Job, unit: Unit) -> None:
    """Run ``unit`` to its end and deliver its output; its fields are kept current all the while."""
    script, nodefile = _prepare(host, job, unit)
    out, err = _open_outputs(host, job, unit)
    shell = job.request.values.get("S", "/bin/bash")
    process = await asyncio.create_subprocess_exec(
        *_hostname(host, unit),
        shell,
        stdin=asyncio.subprocess.PIPE,
        stdout=out,
        stderr=err,
        cwd=job.home,
        env=_environment(host, job, unit, nodefile),
        start_new_session=True,
        umask=_umask(job),
    )
    unit.session_id = process.pid
    assert process.stdin is not None
    # the shell reads the script's name, so that its #! line decides, $0 is the copy, and a bad interpreter gives 127
    process.stdin.write(f"'{script}'\n".encode())
    process.stdin.close()
    limit = asyncio.create_task(_enforce_walltime(host, job, unit))
    code = await process.wait()
    limit.cancel()
    if unit.killed_for in ("walltime", "qdel"):
        # TERM may have ended the outer shell first; the script has the rest of the delay for its last words
        await _await_end(host, process.pid)
    processes.send(processes.in_session(process.pid), signal.SIGKILL)
    for stream in {out, err}:
        os.close(stream)
    _finish(job, unit, code)
    await _deliver(host, job, unit)
    shutil.rmtree(_temporary(host, job, unit), ignore_errors=True)
    unit.ended_s = time.time()
    unit.become("F", unit.substate)


def _prepare(host: Host, job: Job, unit: Unit) -> tuple[Path, Path]:
    script, nodefile = host.files(job, unit)
    _temporary(host, job, unit).mkdir(parents=True, exist_ok=True)
    script.write_bytes(job.script.encode("utf-8", "surrogateescape"))
    script.chmod(0o700)
    lines = [node.name for chunk, node in zip(job.needs.chunks, unit.nodes, strict=True) for _ in range(chunk.slots)]
    nodefile.write_text("".join(f"{line}\n" for line in lines))
    return script, nodefile


def _temporary(host: Host, job: Job, unit: Unit) -> Path:
    return host.base / "tmp" / f"pbs.{job.unit_id(unit)}"


def _hostname(host: Host, unit: Unit) -> list[str]:
    """A UTS namespace named like the node, so that the nodefile's first line means this host."""
    return processes.named_host(unit.nodes[0].name) if host.own_hostnames else []


def _umask(job: Job) -> int:
    return int(job.request.attributes.get("umask", "077"), 8)


def _environment(host: Host, job: Job, unit: Unit, nodefile: Path) -> dict[str, str]:
    first = job.needs.chunks[0].counts
    threads = str(first.get("ompthreads", first["ncpus"]))
    found = {
        **{name: value for name, value in job.variables.items() if value},
        "HOME": job.home,
        "LOGNAME": job.user,
        "USER": job.user,
        "SHELL": "/bin/bash",
        "PATH": host.path,
        "ENVIRONMENT": "BATCH",
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBID": job.unit_id(unit),
        "PBS_JOBNAME": job.name,
        "PBS_JOBDIR": job.home,
        "PBS_QUEUE": job.queue,
        "PBS_NODEFILE": str(nodefile),
        "PBS_NODENUM": "0",
        "PBS_TASKNUM": "1",
        "TMPDIR": str(_temporary(host, job, unit)),
        "NCPUS": threads,
        "OMP_NUM_THREADS": threads,
        "FAKE_PBS": host.marker,
    }
    if host.torque:
        return found | torque.variables(job, unit)
    if unit.index is not None:
        found |= {"PBS_ARRAY_ID": job.id, "PBS_ARRAY_INDEX": str(unit.index)}
    return found


def _open_outputs(host: Host, job: Job, unit: Unit) -> tuple[int, int]:
    """File descriptors of stdout and stderr: in the spool, or at their destination with ``-k d``."""
    flags, mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666 & ~_umask(job)
    keep, join = job.request.values.get("k", ""), job.request.values.get("j", "n")

    def stream(kind: str) -> int:
        direct = "d" in keep and kind in keep and job.output_file(kind, unit).parent.is_dir()
        return os.open(job.output_file(kind, unit) if direct else _spooled(host, job, unit, kind), flags, mode)

    if join == "oe":
        out = stream("o")
        return out, out
    if join == "eo":
        err = stream("e")
        return err, err
    return stream("o"), stream("e")


def _spooled(host: Host, job: Job, unit: Unit, kind: str) -> Path:
    return host.base / "spool" / f"{job.unit_id(unit)}.{'OU' if kind == 'o' else 'ER'}"


async def _enforce_walltime(host: Host, job: Job, unit: Unit) -> None:
    if job.needs.walltime_s is None:
        return
    await asyncio.sleep(job.needs.walltime_s)
    await terminate(host, unit, "walltime")


async def terminate(host: Host, unit: Unit, reason: str, force: bool = False) -> None:
    """TERM every process of the session, KILL what is left after the delay; at once with ``force``."""
    unit.killed_for = unit.killed_for or reason
    while (session_id := unit.session_id) is None:  # it is only just being started
        await asyncio.sleep(0.01)
    if not force:
        processes.send(processes.in_session(session_id), signal.SIGTERM)
        await _await_end(host, session_id)
    if unit.state == "R":
        processes.send(processes.in_session(session_id), signal.SIGKILL)


async def _await_end(host: Host, session_id: int) -> None:
    """Wait until a session has ended, but not longer than the kill delay."""
    deadline = time.monotonic() + host.kill_delay_s
    while processes.in_session(session_id) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)


def _finish(job: Job, unit: Unit, code: int) -> None:
    plain = 256 - code if code < 0 else code
    status, substate, word = {
        "walltime": (WALLTIME_STATUS, FAILED, "exceeded resource walltime"),
        "qdel": (TERM_STATUS, TERMINATED, f"terminated by {job.user}@{SERVER}"),
        "force": (FORCE_STATUS, TERMINATED, f"terminated by {job.user}@{SERVER}"),
    }.get(unit.killed_for, (plain, FAILED, "failed") if plain else (0, FINISHED, "finished"))
    unit.exit_status = status
    unit.comment += f" and {word}"
    unit.become("E", substate)


async def _deliver(host: Host, job: Job, unit: Unit) -> None:
    """Copy the spooled output; without the destination's directory it is lost, and the exit status still 0."""
    for kind in ("o", "e"):
        source = _spooled(host, job, unit, kind)
        if not source.exists():
            continue
        destination = job.output_file(kind, unit)
        if "R" not in job.request.values or kind not in job.request.values["R"]:
            if destination.parent.is_dir():
                _write(destination, source.read_bytes(), 0o666 & ~_umask(job))
            else:
                unit.staged = False
        source.unlink()
    if not unit.staged:
        await asyncio.sleep(1.0)  # a real mom tries for half a minute, the job in state E


def _write(path: Path, content: bytes, mode: int) -> None:
    """``mode`` is for a new file only: the destination may be /dev/null, whose own mode is everybody's."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)


def begin(unit: Unit, where: str) -> None:
    unit.began_s = time.time()
    unit.run_count += 1
    unit.comment = f"Job run at {time.strftime('%a %b %d at %H:%M')} on {where}"
    unit.become("R", RUNNING)
