"""Where the local engine keeps its jobs: one directory per job in a directory of the user on this machine's own disk.

``request.json`` what was asked (written once, before the job exists) · ``state.json`` replaced by the job's keeper
alone · ``cancel`` its presence asks the keeper to stop the job · ``keeper.log`` the keeper's own messages.
Ids sort by submission, and name their host, because a campaign on a shared disk may be taken up elsewhere.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

from harness.errors import UserError, of_the_system
from harness.files import read_file, write_atomically
from harness.jobs.process import Identity

#: marks a directive line in a job script
PREFIX = "#LOCAL"
STATE_VARIABLE = "HARNESS_LOCAL_STATE"
#: set for every process of a local job to the job's id
JOB_ID_VARIABLE = "HARNESS_JOB_ID"
#: exit code of ``engine submit`` when it refuses a job; any other failure may have come after the job was queued
REFUSED = 3
KEEP_ENDED_S = 7 * 86400


@dataclass(frozen=True)
class Request:
    """What a job asks for, from its directives. ``exclusive``: no other local job at the same time."""

    name: str
    script: str
    cores: int
    walltime_s: int
    output: str
    memory_bytes: int | None = None
    exclusive: bool = False


@dataclass(frozen=True)
class State:
    """How a job stands. ``keeper`` supervises; ``leader`` is the script's process and its session's id,
    None until it is started.

    ``cause`` of an ended job: exit (by itself), walltime or cancel; ``exit_status`` as a shell counts: 128 + signal.
    """

    state: str
    keeper: Identity
    leader: Identity | None = None
    cpus: tuple[int, ...] = ()
    started_unix_s: float | None = None
    ended_unix_s: float | None = None
    exit_status: int | None = None
    cause: str = ""


@dataclass(frozen=True)
class JobDirectory:
    root: Path

    @property
    def id(self) -> str:
        return self.root.name

    @property
    def cancel(self) -> Path:
        return self.root / "cancel"

    @property
    def log(self) -> Path:
        return self.root / "keeper.log"

    def request(self) -> Request | None:
        record = _load(self.root / "request.json")
        return None if record is None else Request(**record)

    def state(self) -> State | None:
        """The keeper's last word; None while it has not spoken."""
        record = _load(self.root / "state.json")
        if record is None:
            return None
        keeper, leader = Identity(**record.pop("keeper")), record.pop("leader")
        cpus = tuple(record.pop("cpus"))
        return State(keeper=keeper, leader=Identity(**leader) if leader else None, cpus=cpus, **record)

    def write_request(self, request: Request) -> None:
        write_atomically(self.root / "request.json", json.dumps(asdict(request)))

    def write_state(self, state: State, /, **changes: Any) -> State:
        """Replace the state durably; returns what was written."""
        state = replace(state, **changes)
        write_atomically(self.root / "state.json", json.dumps(asdict(state)))
        return state


class Registry:
    """All local jobs of this user on this machine."""

    def __init__(self, root: Path | None = None):
        self.root = root or default_root()
        self.jobs = self.root / "jobs"
        self.cpus = self.root / "cpus"
        try:
            for directory in (self.root, self.jobs, self.cpus):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            where = f"the local engine keeps its jobs in {self.root} ({STATE_VARIABLE} names another place)"
            raise UserError(f"{where}: {of_the_system(error)}") from None
        _refuse_foreign(self.root)

    def new(self) -> JobDirectory:
        """A fresh job directory whose id no other job ever had."""
        root = self.jobs / f"{time.time_ns() // 1000:x}{secrets.token_hex(2)}@{socket.gethostname()}"
        root.mkdir(mode=0o700)
        return JobDirectory(root)

    def find(self, job_id: str) -> JobDirectory | None:
        root = self.jobs / Path(job_id).name
        return JobDirectory(root) if root.is_dir() else None

    def all(self) -> Iterator[JobDirectory]:
        """Every job, first submitted first."""
        return (JobDirectory(root) for root in sorted(self.jobs.iterdir()))

    @contextmanager
    def gate(self) -> Iterator[None]:
        """One keeper at a time chooses CPUs. flock is safe here: this is a local disk, and death releases it."""
        with (self.root / "gate").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def lock_cpu(self, cpu: int) -> IO[str] | None:
        """Hold a CPU for as long as the returned file, or a copy of it in a child, stays open; None: it is taken."""
        return _try_lock(self.cpus / str(cpu), fcntl.LOCK_EX)

    def lock_machine(self, exclusive: bool) -> IO[str] | None:
        """Hold the machine alone, or together with other jobs that do not need it alone; None: not now."""
        return _try_lock(self.root / "machine", fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)

    def prune(self, now_unix_s: float) -> None:
        """Forget jobs that ended long ago."""
        for job in self.all():
            state = job.state()
            if state is not None and state.ended_unix_s is not None and now_unix_s - state.ended_unix_s > KEEP_ENDED_S:
                shutil.rmtree(job.root, ignore_errors=True)


def default_root() -> Path:
    """On a disk of this machine and independent of TMPDIR, for all of the user's harnesses here must meet in it."""
    chosen = os.environ.get(STATE_VARIABLE)
    return Path(chosen) if chosen else Path(f"/tmp/harness-local-{os.getuid()}")


def host_of(job_id: str) -> str:
    """The host of a local job; empty where the id names none."""
    return job_id.partition("@")[2]


def _try_lock(path: Path, kind: int) -> IO[str] | None:
    stream = path.open("w")
    try:
        fcntl.flock(stream, kind | fcntl.LOCK_NB)
    except OSError:
        stream.close()
        return None
    return stream


def _refuse_foreign(root: Path) -> None:
    facts = root.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        raise UserError(f"{root} belongs to someone else; set {STATE_VARIABLE} to a directory of your own")


def _load(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(read_file(path))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None
