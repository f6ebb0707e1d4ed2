"""TERM and INT inside a rank: what was measured is written, then the rank leaves.

The handler raises :class:`Terminated` in the main thread. A main thread that sits in a C call (a collective that a
dead peer will never join) does not get there, and mpirun sends KILL soon after TERM (Open MPI 5.0.11: a quarter of a
second); so a second thread, woken by the C-level handler itself, writes the evidence and ends the process when the
main thread has not.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

from harness.runtime import early
from harness.runtime.events import EventWriter, EvidenceError

GRACE_SECONDS = 0.1


class Terminated(BaseException):
    """The rank was told to stop by a signal."""

    def __init__(self, number: int):
        self.number = number
        super().__init__(f"told to stop by {signal.Signals(number).name}")

    @property
    def exit_code(self) -> int:
        """As shells report it."""
        return 128 + self.number


class Watchdog:
    """Turns the first signal into :class:`Terminated` inside its block. Use from the main thread."""

    def __init__(self, writer: EventWriter):
        self._writer = writer
        self._settled = False
        self._done = threading.Event()
        self._old: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Watchdog:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._old_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._old = {number: signal.signal(number, self._raise) for number in early.SIGNALS}
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()
        return self

    def deliver(self) -> None:
        """Raise for a signal that came before this block was entered."""
        if (number := early.first()) is not None:
            self._raise(number, None)

    def settle(self) -> None:
        """No signal raises any more: from here on the evidence is being completed, within the grace time."""
        self._settled = True

    def _raise(self, number: int, _frame: FrameType | None) -> None:
        # The handler stays in place when it does nothing: with SIG_IGN the second thread would not be woken.
        if not self._settled:
            self._settled = True
            self._writer.deferral.throw(Terminated(number))

    def _watch(self) -> None:
        while received := os.read(self._read, 1):
            number = received[0]
            if number in early.SIGNALS and not self._done.wait(GRACE_SECONDS):
                stop = Terminated(number)
                with suppress(EvidenceError):  # a full disk must not keep the rank alive
                    if "error" not in self._writer.kinds:
                        self._writer.error(stop)
                    self._writer.end(ok=False)
                print(f"harness.runtime: {stop}", file=sys.stderr, flush=True)
                os._exit(stop.exit_code)
        os.close(self._read)

    def __exit__(self, *_exc: object) -> None:
        self._done.set()
        signal.set_wakeup_fd(self._old_fd)
        for number, handler in self._old.items():
            signal.signal(number, handler)
        early.release()
        os.close(self._write)
