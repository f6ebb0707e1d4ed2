"""Signals, in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from runtime_support import clean_environment, events, of_kind, spec_of, write_point

BODY = """
import signal, sys, time, ctypes
from pathlib import Path
from harness.runtime.clock import SystemClock
from harness.runtime.events import EventWriter
from harness.runtime import termination
from harness.runtime.termination import Terminated, Watchdog

writer = EventWriter(Path(sys.argv[1]) / "events.r0.jsonl", SystemClock())
writer.step(0, (0.0, 0.1, 0.0, 0.0, 0.1, 0.0, 4, 4, None), 1.0)
writer.step(1, (0.1, 0.2, 0.0, 0.0, 0.1, 0.0, 4, 4, None), 1.0)
code = 0
ready = lambda: print("ready", flush=True)
all_sent = lambda: sys.stdin.read()
with Watchdog(writer) as watchdog:
    try:
        try:
            WAIT
        finally:
            watchdog.settle()
    except Terminated as stop:
        code = stop.exit_code
        writer.error(stop)
    AFTER
    writer.end(ok=not code)
sys.exit(code)
"""


def stopped(tmp_path: Path, number: signal.Signals, wait: str, after: str = "pass", times: int = 1) -> int:
    """Exit code of a rank that is sent the signal once it is ready; ``all_sent()`` in its code waits for the last."""
    code = BODY.replace("WAIT", wait).replace("AFTER", after)
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment(),
    )
    with child:
        assert child.stdin is not None and child.stdout is not None
        child.stdout.readline()
        for _ in range(times):
            child.send_signal(number)
        child.stdin.close()
        return child.wait(timeout=120)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_what_was_measured_is_written(tmp_path: Path, number: signal.Signals, code: int) -> None:
    assert stopped(tmp_path, number, "ready(); time.sleep(60)") == code
    records = events(tmp_path)
    assert [record["event"] for record in records] == ["steps", "loss", "steps", "loss", "error", "run_end"]
    assert of_kind(records, "error")[0]["message"] == f"told to stop by {number.name}"
    assert (records[-1]["ok"], records[-1]["steps"]) == (False, 2)


def test_a_main_thread_inside_a_c_call_does_not_hold_the_evidence_back(tmp_path: Path) -> None:
    """libc's system() goes on waiting after a signal, as a collective call does whose peers are gone."""
    wait = "signal.siginterrupt(signal.SIGTERM, False); ctypes.CDLL(None).system(b'echo ready; exec sleep 30')"
    assert stopped(tmp_path, signal.SIGTERM, wait) == 143
    error, end = events(tmp_path)[-2:]
    assert (error["message"], end["ok"], end["steps"]) == ("told to stop by SIGTERM", False, 2)
    assert "File" not in error["traceback"]  # not raised in the main thread, which is still waiting


def test_a_second_signal_does_not_cut_the_first_ones_evidence(tmp_path: Path) -> None:
    assert stopped(tmp_path, signal.SIGTERM, "ready(); time.sleep(60)", after="all_sent()", times=5) == 143
    assert [record["event"] for record in events(tmp_path)].count("run_end") == 1


def test_a_signal_while_closing_leaves_a_finished_run_finished(tmp_path: Path) -> None:
    after = "termination.GRACE_SECONDS = 60; ready(); all_sent()"
    assert stopped(tmp_path, signal.SIGTERM, "pass", after) == 0
    assert events(tmp_path)[-1]["ok"] is True


AFTERWARDS = """
import os, signal, sys
from pathlib import Path
from harness.runtime import early
from harness.runtime.clock import SystemClock
from harness.runtime.events import EventWriter
from harness.runtime.termination import Watchdog
early.hold()
with Watchdog(EventWriter(Path(sys.argv[1]) / "events.r0.jsonl", SystemClock())):
    pass
os.kill(os.getpid(), signal.SIGTERM)
signal.pause()
"""


def test_a_rank_that_has_written_all_is_ended_by_a_signal_as_any_process(tmp_path: Path) -> None:
    """It may hang in the end of MPI, whose other ranks are gone."""
    argv = [sys.executable, "-c", AFTERWARDS, str(tmp_path)]
    assert subprocess.run(argv, env=clean_environment(), timeout=120).returncode == -signal.SIGTERM


IMPORTING = """
import os, signal, sys
import harness.runtime.early
count = 0
def audit(event, arguments):
    global count
    if event == "import" and count >= 0:
        count += 1
        if count == int(os.environ["AT_IMPORT"]):
            os.kill(os.getpid(), signal.SIGTERM)
            count = -1
sys.argv = ["harness.runtime", sys.argv[1]]
sys.addaudithook(audit)
import runpy
runpy.run_module("harness.runtime", run_name="__main__", alter_sys=False)
"""


@pytest.mark.parametrize("at_import", ["5", "60", "200"])
def test_a_signal_while_a_rank_imports_is_written_down(tmp_path: Path, at_import: str) -> None:
    """run_start, the reason and run_end: as of any other rank that was told to stop."""
    point = write_point(tmp_path, spec_of())
    environment = {**clean_environment(), "AT_IMPORT": at_import}
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, str(point)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 143, done.stderr
    records = events(tmp_path)
    assert [record["event"] for record in records] == ["run_start", "error", "run_end"]
    assert (records[1]["message"], records[2]["ok"]) == ("told to stop by SIGTERM", False)
