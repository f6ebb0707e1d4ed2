"""Ctrl-C and TERM: the first asks for an orderly end, the second leaves at once (nothing is lost either way)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from harness.jobs.drive import Stop

MESSAGE = b"\ninterrupted: no further job is started; once more to leave at once\n"


@contextmanager
def orderly(stop: Stop) -> Iterator[None]:
    """While inside, signals set ``stop``; afterwards they do what they did before."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        if stop.wanted:
            raise KeyboardInterrupt
        os.write(2, MESSAGE)
        stop.ask("interrupt")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
