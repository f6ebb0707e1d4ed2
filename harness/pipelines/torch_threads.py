"""Loader threads in the training process, each with a buffer of its own, their batches taken in turn."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from harness.pipelines.assembly import Assembler, Made, Part
from harness.pipelines.corrupt import Losses
from harness.pipelines.interface import option
from harness.pipelines.torch_loader import PREFETCH, check_buffer, delivered, tensors
from harness.runtime.interfaces import Batch, RunContext

_LOOK_S = 0.2
_JOIN_S = 10.0


class ThreadLoader:
    """Batches of one rank, made by ``workers`` threads; ``prefetch`` batches are kept ready for each, 2 unless set.

    A thread holds one more batch, the one that it makes. The order of batches does not depend on who is faster.

    Raises:
        UserError: ``prefetch`` 0 with workers.
    """

    def __init__(self, context: RunContext, assembler: Assembler):
        axes = context.axes
        check_buffer(axes)
        self._context = context
        self._assembler = assembler
        self._losses = Losses(option(axes, "corrupt") == "skip", context.note)
        self._stopping = threading.Event()
        self._buffers: list[queue.Queue[Any]] = [queue.Queue(axes.prefetch or PREFETCH) for _ in range(axes.workers)]
        self._threads = [
            threading.Thread(target=self._work, args=(worker,), name=f"loader-{worker}", daemon=True)
            for worker in range(axes.workers)
        ]
        for thread in self._threads:
            thread.start()

    def batches(self) -> Iterator[Batch]:
        for made in self._made():
            yield from delivered(tensors(made), self._losses, self._assembler)

    def _made(self) -> Iterator[Made]:
        if not self._buffers:
            yield from self._assembler.batches(Part())
        while not self._stopping.is_set():
            for buffer in self._buffers:
                made = buffer.get()
                if isinstance(made, Exception):
                    raise made
                yield made

    def _work(self, worker: int) -> None:
        try:
            for made in self._assembler.batches(Part(worker, len(self._threads))):
                self._put(worker, made)
                if self._stopping.is_set():
                    return
        except Exception as error:  # the training thread raises it
            self._put(worker, error)

    def _put(self, worker: int, made: Any) -> None:
        while not self._stopping.is_set():
            with suppress(queue.Full):
                self._buffers[worker].put(made, timeout=_LOOK_S)
                return

    def occupancy(self) -> int | None:
        """Batches that are ready, those being made not counted."""
        return sum(buffer.qsize() for buffer in self._buffers) if self._buffers else None

    def worker_cpus(self) -> list[int] | None:
        """Those of the first thread."""
        with suppress(OSError):
            if self._threads and self._threads[0].native_id is not None:
                return sorted(os.sched_getaffinity(self._threads[0].native_id))
        return None

    def close(self) -> None:
        self._losses.summarise()
        self._stopping.set()
        for thread in self._threads:
            thread.join(_JOIN_S)
        self._threads = []
