"""Finding and ending the processes of a private site, and only those: by pid file, session, or environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")


def wait_until(condition: Callable[[], bool], timeout_s: float, every_s: float = 0.05) -> bool:
    """Poll ``condition`` until it holds (True) or ``timeout_s`` have passed (False)."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True


def wait_for(condition: Callable[[], Value], timeout_s: float = 120.0) -> Value:
    """Poll ``condition`` and return its first true value; the test fails where there is none in ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"it did not happen within {timeout_s:g} s"
        time.sleep(0.02)
    return value


def alive(pid: int) -> bool:
    """Whether ``pid`` runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def in_session(session_id: int) -> list[int]:
    """Running processes of a session: field 6 of /proc/PID/stat, see proc(5)."""
    found = []
    for pid in pids():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session_id and fields[0] not in ("Z", "X"):
            found.append(pid)
    return found


def with_environment(entry: str) -> list[int]:
    """Processes started with ``NAME=value`` in their environment, this one and its ancestors left out."""
    wanted, ours, found = entry.encode(), _ancestry(), []
    for pid in pids():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in environment and pid not in ours and alive(pid):
            found.append(pid)
    return found


def _ancestry() -> set[int]:
    chain, pid = set(), os.getpid()
    while pid > 1:
        chain.add(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
    return chain


def send(targets: Iterable[int], number: signal.Signals) -> None:
    for pid in targets:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def end(targets: Iterable[int], grace_s: float = 5.0) -> None:
    """TERM, wait up to ``grace_s``, KILL, and return when all are gone."""
    targets = list(targets)
    send(targets, signal.SIGTERM)
    if not wait_until(lambda: not any(alive(pid) for pid in targets), grace_s):
        send([pid for pid in targets if alive(pid)], signal.SIGKILL)
        wait_until(lambda: not any(alive(pid) for pid in targets), 60)


def kill_all(entry: str) -> None:
    """KILL every process with ``NAME=value`` in its environment, but this one and its ancestors, and see them gone."""

    def are_gone() -> bool:
        send(left := with_environment(entry), signal.SIGKILL)
        return not left

    wait_until(are_gone, 60)


def named_host(name: str) -> list[str]:
    """The words before a command that let it find ``name`` as this machine's host name, in a namespace of its own."""
    rights = [] if os.getuid() == 0 else ["--map-current-user", "--keep-caps"]
    return ["unshare", "--uts", *rights, "sh", "-c", 'hostname "$1"; shift; exec "$@"', "sh", name]


def can_name_hosts() -> bool:
    """Whether :func:`named_host` works here; containers and hardened kernels may forbid it."""
    try:
        done = subprocess.run([*named_host("elsewhere"), "uname", "-n"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.stdout == "elsewhere\n"


def guard(command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """A process that runs ``command`` when this one is gone, however it went, or when its stdin is closed.

    Its own session keeps a Ctrl-C or a kill of the test session's process group from reaching it.
    """
    code = "import subprocess, sys; sys.stdin.buffer.read(); sys.exit(subprocess.call(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", code, *command],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def release(guardian: subprocess.Popen[bytes], timeout_s: float = 60) -> int:
    """Close a guardian's stdin and wait for its command."""
    assert guardian.stdin is not None
    guardian.stdin.close()
    return guardian.wait(timeout_s)
