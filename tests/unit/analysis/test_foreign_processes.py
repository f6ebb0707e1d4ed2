"""Logs read by several processes: the same table, and nothing left of them however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sites.processes import alive, wait_for

LOGS = 9
# how this process, and those that it forks, read logs: two at a time, by as many processes as the first word says
PROGRAM = """
import os, signal, sys
from pathlib import Path
from harness.analysis.foreign import table
from harness.cli.main import main

CPUS, WHAT = int(sys.argv[1]), sys.argv[2]
os.sched_getaffinity = lambda pid: set(range(CPUS))
table.TOGETHER, table.PARALLEL_FROM = 2, 0
read, asking = table._read, os.getpid()

def reads(*arguments):
    if os.getpid() != asking:
        Path(f"worker.{os.getpid()}").touch()
        if WHAT == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if WHAT == "stay":
            signal.pause()
    return read(*arguments)

table._read = reads
if WHAT == "threads":
    import threading
    threading.Thread(target=signal.pause, daemon=True).start()
sys.argv[1:] = ["collect", "--logs", "*.log", "--pattern", "alcf", "-o", f"{CPUS}-{WHAT}.csv"]
try:
    main()
finally:
    Path(f"{CPUS}-{WHAT}.imported").write_text(" ".join(sys.modules))
"""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number in range(LOGS):
        rates = [60.5 + step % (number + 2) for step in range(30)]
        lines = [f"Finished step {step},loss=7.0, acc=0.1 ({rate} img/s)" for step, rate in enumerate(rates)]
        # a column that the first logs do not have, and one log that measured nothing
        lines = [f"threading set: {number} {number}"] * (number > 3) + lines * (number != 5)
        (tmp_path / f"{number}.log").write_text("\n".join([*lines, ""]))
    return tmp_path


def started(logs: Path, cpus: int, what: str = "read") -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", PROGRAM, str(cpus), what]
    return subprocess.Popen(argv, cwd=logs, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def told(logs: Path, cpus: int, what: str = "read") -> tuple[int, str]:
    process = started(logs, cpus, what)
    _, error = process.communicate()
    return process.returncode, error


def workers(logs: Path) -> list[int]:
    return [int(path.suffix[1:]) for path in logs.glob("worker.*")]


def test_several_processes_give_the_same_table(logs: Path) -> None:
    assert told(logs, 1) == told(logs, 3) == (0, "")
    assert workers(logs)
    alone = (logs / "1-read.csv").read_text()
    assert alone.count("\n") == LOGS and "intra_op_threads" in alone.splitlines()[0]
    assert (logs / "3-read.csv").read_text() == alone
    # who only asks imports neither numpy nor what reads logs
    assert "numpy" in (logs / "1-read.imported").read_text().split()
    assert not {"numpy", "harness.analysis.foreign.rates"} & set((logs / "3-read.imported").read_text().split())


def test_a_process_with_threads_is_not_forked(logs: Path) -> None:
    assert told(logs, 3, "threads") == (0, "")
    assert not workers(logs) and (logs / "3-threads.csv").exists()


def test_what_cannot_be_read_is_told_as_by_one_process(logs: Path) -> None:
    for number in (4, 8):
        (logs / f"{number}.log").write_bytes(b"\x1f\x8b cut off")
    code, error = told(logs, 1)
    assert code == 2 and error.count("\n") == 1 and "4.log" in error
    assert told(logs, 3) == (code, error)
    assert not any(map(alive, workers(logs)))


def test_a_killed_worker_is_told_and_no_table_is_written(logs: Path) -> None:
    code, error = told(logs, 2, "die")
    assert code == 1 and error.count("\n") == 1 and "was killed" in error
    assert not (logs / "2-die.csv").exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_whom_it_reads_for(logs: Path, how: signal.Signals) -> None:
    process = started(logs, 2, "stay")
    wait_for(lambda: len(workers(logs)) == 2)
    os.kill(process.pid, how)  # that one alone: not its workers, as Ctrl-C on a terminal would
    _, error = process.communicate()
    assert (process.returncode, error.strip()) == ((130, "interrupted") if how == signal.SIGINT else (-how, ""))
    wait_for(lambda: not any(map(alive, workers(logs))))
