"""Arrays in memory through a Keras ``PyDataset`` and Keras's own ``OrderedEnqueuer``.

The knobs are Keras's: ``workers`` (0: the training thread makes the batches), ``multiprocessing``
(``use_multiprocessing``: worker processes instead of threads) and ``max_queue_size``. The queue holds batches that are
ready *and* batches still being made, so it also bounds how many workers can be busy. Under Keras 3 ``model.fit`` itself
starts an enqueuer only for two or more workers; here, as in Keras 2 and in the words of the knob, one worker is one.
"""

from __future__ import annotations

import itertools
import multiprocessing
import multiprocessing.pool
import os
import queue
import signal
import threading
from collections.abc import Iterator
from typing import Any

import keras
from keras.src.trainers.data_adapters import py_dataset_adapter

from harness.errors import HarnessError
from harness.pipelines.stream import BatchStream, load_stream
from harness.runtime.interfaces import Batch, RunContext

_LOOK_S = 1.0
_JOIN_S = 0.05
#: for a pool to end by itself after a worker of it was killed
_END_S = 2.0


def build(context: RunContext) -> KerasSequence:
    """The pipeline of one rank. Loader processes are forked here, before the model's threads exist."""
    axes = context.axes
    return KerasSequence(load_stream(context), axes.batch_size, axes.workers, axes.multiprocessing, axes.max_queue_size)


class StreamDataset(keras.utils.PyDataset):  # type: ignore[misc]
    """An endless ``PyDataset`` over a :class:`BatchStream`; thread-safe, as the stream is."""

    def __init__(self, stream: BatchStream, **knobs: Any):
        super().__init__(**knobs)
        self._stream = stream

    @property
    def num_batches(self) -> None:
        """None: without end."""
        return

    def __getitem__(self, index: int) -> Any:
        return self._stream[index]


class KerasSequence:
    """Batches of one rank, in order, made by Keras's workers."""

    def __init__(self, stream: BatchStream, batch_size: int, workers: int, multiprocess: bool, max_queue_size: int):
        self._dataset = StreamDataset(
            stream, workers=workers, use_multiprocessing=multiprocess, max_queue_size=max_queue_size
        )
        self._batch_size = batch_size
        self._pool: multiprocessing.pool.Pool | None = None
        self._pids: list[int] = []
        self._others: set[int | None] = set()
        if workers:
            self._start_workers(workers, multiprocess, max_queue_size)

    def _start_workers(self, workers: int, multiprocess: bool, max_queue_size: int) -> None:
        self._enqueuer = py_dataset_adapter.OrderedEnqueuer(
            self._dataset, workers=workers, use_multiprocessing=multiprocess, max_queue_size=max_queue_size
        )
        if multiprocess:
            self._others = {child.pid for child in multiprocessing.active_children()}
            # fork: the arrays are shared copy on write instead of being pickled to each worker
            self._pool = multiprocessing.get_context("fork").Pool(
                workers, _start_worker, ({self._enqueuer.uid: self._dataset},)
            )
            self._pids = [c.pid for c in multiprocessing.active_children() if c.pid and c.pid not in self._others]
        else:
            self._pool = multiprocessing.pool.ThreadPool(workers)
        self._enqueuer.executor_fn = lambda _: self._pool

    def batches(self) -> Iterator[Batch]:
        if self._pool is None:
            for index in itertools.count():
                yield Batch(self._dataset[index], self._batch_size)
        self._enqueuer.start()
        while True:
            # OrderedEnqueuer.get would wait for ever on a batch whose worker was killed
            future = self._enqueuer.future_queue.get()
            if isinstance(future, Exception):
                raise future
            yield Batch(self._wait(future), self._batch_size)

    def _wait(self, future: multiprocessing.pool.AsyncResult[Any]) -> Any:
        while True:
            try:
                return future.get(_LOOK_S)
            except multiprocessing.TimeoutError:
                self._check_workers()

    def _dead(self) -> list[int]:
        alive = {child.pid for child in multiprocessing.active_children()}
        return [pid for pid in self._pids if pid not in alive]

    def _check_workers(self) -> None:
        if dead := self._dead():
            raise HarnessError(f"loader worker processes {dead} died, perhaps for want of memory (see dmesg, job log)")

    def occupancy(self) -> int | None:
        """Batches of the queue that are ready; those still being made are not counted."""
        if self._pool is None:
            return None
        pending = self._enqueuer.future_queue
        with pending.mutex:
            return sum(1 for future in pending.queue if not isinstance(future, Exception) and future.ready())

    def worker_cpus(self) -> list[int] | None:
        """Asked of a worker, thread or process; waits until one is free."""
        if self._pool is None:
            return None
        return sorted(self._pool.apply(os.sched_getaffinity, (0,)))

    def close(self) -> None:
        if self._pool is None:
            return
        feeder = self._enqueuer.run_thread
        self._enqueuer.stop(drain_queue_and_join=False)
        while feeder is not None and feeder.is_alive():
            self._discard()
            feeder.join(_JOIN_S)
        if self._dead():
            self._give_up(self._pool)
        else:
            self._pool.terminate()
            if self._pids:  # a thread cannot be ended from outside; one stuck in a read must not hold up the run's end
                self._pool.join()
        self._pool = None

    def _give_up(self, pool: multiprocessing.pool.Pool) -> None:
        """End the workers of a pool of which one was killed.

        One that waited for work held the lock of the task queue, for which Pool.terminate would wait for ever.
        """
        ending = threading.Thread(target=pool.terminate, daemon=True)
        ending.start()
        ending.join(_END_S)
        for child in multiprocessing.active_children():
            if child.pid not in self._others:
                child.kill()

    def _discard(self) -> None:
        """Empty the queue, so that a feeder that waits for room sees that it should stop."""
        try:
            while True:
                self._enqueuer.future_queue.get_nowait()
        except queue.Empty:
            return


def _start_worker(datasets: dict[int, Any]) -> None:
    """In a new loader process: the data, and none of the parent's signal handlers, which would write its evidence."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    py_dataset_adapter.init_pool_generator(datasets)
