"""Processes that share work: how they begin, and that none outlives whom it works for."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection
from typing import Any

from harness.errors import HarnessError


@contextmanager
def pool(
    count: int, context: Any, prepare: Callable[..., None] | None = None, *given: Any
) -> Iterator[ProcessPoolExecutor]:
    """Processes that have called ``prepare(*given)``; none is left when the block is.

    Raises:
        HarnessError: where one of them was killed.
    """
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(count, context, initializer=_begin, initargs=(prepare, *given)) as executor:
        try:
            yield executor
        except BrokenProcessPool:
            raise HarnessError(
                "a process that read with others was killed, perhaps for want of memory; what was read is as it was: "
                "give the same command again, or in one process: taskset -c 0 harness …"
            ) from None
        except BaseException:
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()
            raise


def _begin(prepare: Callable[..., None] | None, *given: Any) -> None:
    """What a worker does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asked
    gc.disable()  # evidence holds no cycles, and a piece is small
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=[parent.sentinel], daemon=True).start()
    if prepare is not None:
        prepare(*given)


def _end_with(sentinel: int) -> None:
    """A killed parent leaves nothing that would tell a waiting worker."""
    connection.wait([sentinel])
    os._exit(1)
