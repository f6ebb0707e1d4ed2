"""Processes of this machine, told apart for certain: a process id alone may have been given to another since.

Linux only (``/proc``, see proc(5)); the login and compute nodes of the clusters at hand all are.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class Identity:
    """A process for as long as the machine is up: its id, its start in clock ticks since boot, and the boot."""

    pid: int
    start_ticks: int
    boot_id: str


def boot_id() -> str:
    """Changes with every boot of the machine."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> Identity | None:
    """The identity of a running process; None where there is none, or only a zombie."""
    fields = _stat(pid)
    return None if fields is None else Identity(pid, int(fields[19]), boot_id())


def is_alive(identity: Identity) -> bool:
    return identify(identity.pid) == identity


def members(session: int, mark: str) -> list[int]:
    """Processes of a session, and those whose environment holds ``mark`` (NAME=value), our own left out.

    The mark finds what has left the session, such as a daemon; the session what has cleaned its environment.
    """
    wanted = mark.encode()
    return [pid for pid in _processes() if pid != os.getpid() and _belongs(pid, session, wanted)]


def end(pids: Iterable[int], signal_number: signal.Signals) -> None:
    """Signal processes; those that are gone or not ours are passed over."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal_number)


def _belongs(pid: int, session: int, mark: bytes) -> bool:
    fields = _stat(pid)
    if fields is None:
        return False
    if int(fields[3]) == session:
        return True
    try:
        return mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _processes() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the third (state) on: the second, the command, may hold blanks and brackets."""
    try:
        text = (_PROC / str(pid) / "stat").read_bytes().decode(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if not fields or fields[0] in "ZX" else fields
