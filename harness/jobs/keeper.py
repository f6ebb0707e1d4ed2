"""The keeper of one local job: a process of its own that outlives the harness which submitted the job.

It waits for CPUs, confines the job to them, starts the script in a session of its own, holds it to its walltime, and
ends everything that the job started. If the keeper itself is killed the job goes on, still holding its CPUs.
"""

from __future__ import annotations

import errno
import os
import pwd
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from harness.jobs.local_cpus import Share, take_share
from harness.jobs.local_registry import JOB_ID_VARIABLE, JobDirectory, Registry, Request, State
from harness.jobs.process import Identity, end, identify, is_alive, members

#: seconds between TERM and KILL: mpirun needs some to end its ranks, and the ranks to write what they measured
GRACE_S = 15.0
WAIT_S = 0.1
#: a disk that is full may have room again
TRY_AGAIN_S = 2.0
KEEP_TRYING_S = 3600.0


def keep(registry: Registry, job: JobDirectory) -> None:
    """Wait for the job's turn, run it, and record how it ended."""
    request, me = job.request(), identify(os.getpid())
    assert request is not None and me is not None, "a keeper is started after its job's request is written"
    state = job.write_state(State("QUEUED", keeper=me))
    share = _wait_for_share(registry, job, request)
    if share is None:
        job.write_state(state, state="CANCELLED", cause="cancel", ended_unix_s=time.time())
        return
    os.sched_setaffinity(0, share.cpus)
    running = replace(state, state="RUNNING", cpus=share.cpus, started_unix_s=time.time())
    _record(job, running)  # first: what the script does can be seen at once, and must not be a queued job's
    child = _start(job, request, share)
    leader = identify(child.pid) or Identity(child.pid, 0, me.boot_id)  # 0 ticks: it has ended already
    running = replace(running, leader=leader)
    _record(job, running)
    # The script has copies of the open locks: it holds the CPUs, too, even should this keeper be killed.
    cause = _supervise(job, request, child)
    end_members(job.id, child.pid)
    ended_unix_s = time.time()  # before the next job may start
    share.release()
    _finish_in_the_end(job, running, cause, child.wait(), ended_unix_s)


def _record(job: JobDirectory, state: State) -> None:
    """On a full disk the job runs all the same, and is told of when it has ended."""
    with suppress(OSError):
        job.write_state(state)


def _finish_in_the_end(job: JobDirectory, state: State, cause: str, returncode: int, ended_unix_s: float) -> None:
    """Record the end of a job as soon as the disk takes it: until then it would count as running."""
    until = time.monotonic() + KEEP_TRYING_S
    while True:
        try:
            finish(job, state, cause, returncode, ended_unix_s)
            return
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or time.monotonic() > until:
                raise
            time.sleep(TRY_AGAIN_S)


def finish(job: JobDirectory, state: State, cause: str, returncode: int | None, ended_unix_s: float) -> State:
    """Record the end of a job; ``returncode`` None where nobody waited for it."""
    word = {"walltime": "TIMED_OUT", "cancel": "CANCELLED"}.get(cause, "SUCCEEDED" if returncode == 0 else "FAILED")
    code = 128 - returncode if returncode is not None and returncode < 0 else returncode
    return job.write_state(state, state=word, cause=cause, exit_status=code, ended_unix_s=ended_unix_s)


def end_members(job_id: str, session: int) -> None:
    """End whatever a job has left running, mpirun's orphans in process groups of their own included."""
    mark = _mark(job_id)
    deadline = time.monotonic() + GRACE_S
    end(members(session, mark), signal.SIGTERM)
    while (left := members(session, mark)) and time.monotonic() < deadline:
        time.sleep(WAIT_S)
    end(left, signal.SIGKILL)


def _wait_for_share(registry: Registry, job: JobDirectory, request: Request) -> Share | None:
    while not job.cancel.exists():
        if share := take_share(registry, job, request):
            return share
        time.sleep(WAIT_S)
    return None


def _start(job: JobDirectory, request: Request, share: Share) -> subprocess.Popen[bytes]:
    output = Path(request.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as stream:
        return subprocess.Popen(
            ["/bin/bash", request.script],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            cwd=Path(request.script).parent,
            env=environment(job.id, request),
            start_new_session=True,
            pass_fds=[lock.fileno() for lock in share.locks],
        )


def environment(job_id: str, request: Request) -> dict[str, str]:
    """The caller's environment, and what the job may want to know of itself."""
    told = {JOB_ID_VARIABLE: job_id, "HARNESS_EXCLUSIVE": str(int(request.exclusive))}
    return {"HOME": _home(), **os.environ, **told}


def _home() -> str:
    """Where cron and some containers set no HOME, without which Open MPI does not start; batch systems do set it."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a container may run under a number that has no name
        return tempfile.gettempdir()


def _supervise(job: JobDirectory, request: Request, child: subprocess.Popen[bytes]) -> str:
    """Wait for the script's end, or stop it; returns the cause."""
    deadline = time.monotonic() + request.walltime_s
    while not _has_ended(child.pid):
        if cause := "cancel" if job.cancel.exists() else "walltime" if time.monotonic() >= deadline else "":
            _stop(child.pid)
            return cause
        time.sleep(WAIT_S)
    return "exit"


def _has_ended(pid: int) -> bool:
    """Whether our child has ended; it is not reaped, so its id, which is its session's, stays its own."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _stop(leader: int) -> None:
    """TERM to the script alone, which passes it on (a second TERM makes mpirun kill its ranks), then KILL to all.

    The script's trap has time to write the exit record before.
    """
    deadline = time.monotonic() + GRACE_S
    os.kill(leader, signal.SIGTERM)
    while not _has_ended(leader) and time.monotonic() < deadline:
        time.sleep(WAIT_S)
    os.killpg(leader, signal.SIGKILL)


def has_members(job: JobDirectory, state: State) -> bool:
    """Whether anything of a job still runs, be its keeper alive or not."""
    session = _session(state)
    return bool(members(session, _mark(job.id)))


def stop_unsupervised(job: JobDirectory, state: State, cause: str) -> State:
    """End a running job whose keeper was killed, as the keeper would have."""
    end_members(job.id, _session(state))
    return finish(job, state, cause, None, time.time())


def _session(state: State) -> int:
    """The job's session; -1, which matches nothing, once its id may belong to another."""
    return state.leader.pid if state.leader is not None and is_alive(state.leader) else -1


def _mark(job_id: str) -> str:
    return f"{JOB_ID_VARIABLE}={job_id}"


def is_supervised(state: State) -> bool:
    return is_alive(state.keeper)
