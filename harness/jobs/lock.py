"""One harness drives a campaign at a time, on any shared file system.

Built from what NFS keeps atomic: ``link`` to a name that must not exist, and ``mkdir``. The holder touches its lock
now and then; the server's own clock stamps both the lock and the file that it is compared with, so that clocks
of different hosts do not matter.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.errors import HarnessError
from harness.files import naming, read_file
from harness.jobs.process import Identity, identify, is_alive

#: a lock of another host that was not touched for so long is taken over
STALE_S = 600.0
HEARTBEAT_S = 30.0
TAKEOVER_S = 60.0


class LockError(HarnessError):
    """Another harness drives the campaign, or has taken it over."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lock; ``token`` tells two locks of one process apart."""

    host: str
    process: Identity
    since_unix_s: float
    token: str

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since_unix_s))
        return f"harness process {self.process.pid} on {self.host}, since {since}"


class CampaignLock:
    """A held lock. Call :meth:`hold` before every act that nobody else may do at the same time."""

    def __init__(self, path: Path, holder: Holder, clock: Callable[[], float]):
        self._path, self._holder, self._clock = path, holder, clock
        self._touched = clock()

    def hold(self) -> None:
        """Keep the lock fresh.

        Raises:
            LockError: when somebody else has taken it, for we must have looked dead.
        """
        now = self._clock()
        if now - self._touched < HEARTBEAT_S:
            return
        holder = read_holder(self._path)
        if holder != self._holder:
            raise LockError(f"{self._path} was taken over by {holder or 'nobody known'}; this harness stops")
        os.utime(self._path)
        self._touched = now

    def release(self) -> None:
        if read_holder(self._path) == self._holder:
            self._path.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, patience_s: float = 0.0, clock: Callable[[], float] = time.monotonic) -> Iterator[CampaignLock]:
    """Hold the campaign's lock, after waiting at most ``patience_s`` for it.

    Raises:
        LockError: naming who holds it.
    """
    deadline = clock() + patience_s
    while True:
        try:
            lock = acquire(path, clock)
            break
        except LockError:
            if clock() >= deadline:
                raise
            time.sleep(0.2)
    try:
        yield lock
    finally:
        lock.release()


def acquire(path: Path, clock: Callable[[], float] = time.monotonic) -> CampaignLock:
    process = identify(os.getpid())
    assert process is not None, "this process runs"
    mine = Holder(os.uname().nodename, process, time.time(), secrets.token_hex(8))
    with naming(path.parent):  # drafts and probes are nobody's concern: it is the directory that cannot be written
        for _ in range(3):
            if _link(path, mine):
                return CampaignLock(path, mine, clock)
            holder = read_holder(path)
            if path.exists() and not is_stale(path, holder):
                break
            _remove_stale(path, holder)
    raise LockError(
        f"{path.parent} is driven by {holder or 'another harness'}; "
        "watch it with `harness status`, or end it with `harness cancel`"
    )


def read_holder(path: Path) -> Holder | None:
    """Who holds the lock; None where nobody does or the file makes no sense."""
    try:
        record = json.loads(read_file(path))
        return Holder(**{**record, "process": Identity(**record["process"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def is_stale(path: Path, holder: Holder | None) -> bool:
    """Whether the lock's holder is dead: for certain on this host, by its age where it is another's."""
    if holder is not None and holder.host == os.uname().nodename:
        return not is_alive(holder.process)
    return _is_older(path, STALE_S)


def _link(path: Path, holder: Holder) -> bool:
    with _temporary(path, "new") as draft:
        draft.write_text(json.dumps(asdict(holder)))
        try:
            os.link(draft, path)
        except FileExistsError:
            # An NFS server may have made the link and lost its answer: the count of links tells (open(2), O_EXCL).
            return draft.stat().st_nlink == 2
        return True


def _remove_stale(path: Path, stale: Holder | None) -> None:
    """Remove a dead holder's lock. One at a time, or the second would remove the first one's new lock."""
    turn = path.with_name(f".{path.name}.takeover")
    try:
        turn.mkdir()
    except FileExistsError:
        if _is_older(turn, TAKEOVER_S):  # its owner died within these few lines
            with contextlib.suppress(FileNotFoundError):
                turn.rmdir()
        return
    try:
        # a lock that makes no sense and one that is not there read alike: only what is there and old may be removed,
        # for between a look at nothing and the removal somebody may have linked a new lock
        if read_holder(path) == stale and (stale is not None or _is_older(path, STALE_S)):
            path.unlink(missing_ok=True)
    finally:
        turn.rmdir()


def _is_older(path: Path, age_s: float) -> bool:
    """By the file server's own clock: compared with a file made now."""
    with _temporary(path, "age") as probe:
        probe.touch()
        with contextlib.suppress(FileNotFoundError):
            return probe.stat().st_mtime - path.stat().st_mtime > age_s
    return False


@contextmanager
def _temporary(path: Path, purpose: str) -> Iterator[Path]:
    name = path.with_name(f".{path.name}.{purpose}.{os.uname().nodename}.{secrets.token_hex(8)}")
    try:
        yield name
    finally:
        name.unlink(missing_ok=True)
