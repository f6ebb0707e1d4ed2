"""The one place where the login side runs processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.jobs.schedulers.interface import Answer

#: a busy server may take a minute over qsub; what it had not answered by then is found out by the job's name
TIMEOUT_S = 120.0
COMMAND_NOT_FOUND = 127


def run(
    argv: Sequence[str],
    timeout_s: float = TIMEOUT_S,
    added: Mapping[str, str] | None = None,
    end_if_interrupted: bool = False,
    variables: Mapping[str, str] | None = None,
) -> Answer:
    """Run a command and return what it said; it is never given a shell or our terminal.

    It gets a session of its own, so that Ctrl-C at the terminal does not cut off a submission half-way; with
    ``end_if_interrupted`` Ctrl-C ends it too. A command that is not there answers as a shell would, with 127.
    ``variables``: its environment; None: ours.
    """
    environment = {**(os.environ if variables is None else variables), **(added or {}), "LC_ALL": "C"}
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=environment,
        )
    except OSError as error:
        return Answer(COMMAND_NOT_FOUND, "", f"{argv[0]}: {error.strerror}")
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        out, err = process.communicate()
        return Answer(None, _text(out), _text(err))
    except KeyboardInterrupt:
        if end_if_interrupted:
            _kill(process)
        raise
    return Answer(process.returncode, _text(out), _text(err))


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def start_detached(argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a process that outlives us and our terminal; what it says is appended to ``log``."""
    with log.open("ab") as stream:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
