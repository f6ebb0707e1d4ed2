"""Commands as benchmarks run them: elapsed time, peak memory, and the system calls that touch files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HARNESS = str(Path(sys.executable).parent / "harness")

#: runs the command in its arguments and writes its peak memory to file descriptor 3. A process between, since a child
#: begins with its parent's peak (fork and exec keep it), and a benchmark has scipy in memory.
_MEASURING = (
    "import os, resource, subprocess, sys\n"
    "code = subprocess.call(sys.argv[1:])\n"
    "os.write(3, str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss).encode())\n"
    "sys.exit(code)\n"
)
_FILE_CALLS = "trace=%file,getdents64,read,readlink"


@dataclass(frozen=True)
class Taken:
    """What a command took: seconds by the clock, and the peak resident memory of its largest process."""

    elapsed_s: float
    peak_mb: float


def run(argv: Sequence[str], cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> Taken:
    """A command to its end, its output thrown away.

    Raises:
        RuntimeError: where it fails, with the end of what it said.
    """
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as peak:

        def give_peak() -> None:
            os.dup2(peak.fileno(), 3)
            os.set_inheritable(3, True)

        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MEASURING, *argv],
            cwd=cwd,
            env=None if environment is None else {**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            close_fds=False,
            preexec_fn=give_peak,
            check=False,
        )
        elapsed_s = time.perf_counter() - begin
        if done.returncode:
            said.seek(0)
            text = said.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"{' '.join(argv)} returned {done.returncode}:\n{text}")
        peak.seek(0)
        return Taken(elapsed_s, int(peak.read()) / 1024 * 1.048576)


def file_calls(argv: Sequence[str], cwd: Path | None = None) -> dict[str, int] | None:
    """How often a command and its children open, look at, list and read files, by the name of the system call; None
    where there is no strace, or tracing is not allowed."""
    with tempfile.NamedTemporaryFile() as table:
        trace = ["strace", "-f", "-q", "-c", "-U", "name,calls", "-e", _FILE_CALLS, "-o", table.name]
        try:
            done = subprocess.run(
                [*trace, *argv], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
        except OSError:
            return None
        counts = {name: int(calls) for name, calls in re.findall(r"^(\w+) +(\d+)$", Path(table.name).read_text(), re.M)}
    counts.pop("total", None)
    return counts if done.returncode == 0 and counts else None


def elapsed_s(argv: Sequence[str], cwd: Path | None = None) -> float:
    """Seconds of a command that must succeed, with nothing between it and the clock."""
    begin = time.perf_counter()
    silent = subprocess.DEVNULL
    subprocess.run(argv, cwd=cwd, stdin=silent, stdout=silent, stderr=silent, check=True)
    return time.perf_counter() - begin
