"""Threads that read, decode and enqueue samples into a TensorFlow queue, from which training dequeues batches.

AFRL's pipeline: ``workers`` are its enqueue threads, and the number of samples in the queue is visible at any time, so
rates of filling and draining can be told apart. 0 workers: the training thread fills the queue itself when it must.
Samples are decoded in parallel and enqueued in the order of the epoch's permutation, so batches do not depend on the
number of threads, and each sample is delivered once per epoch. In the source one reader of one file serialised all
threads; here each reads its records for itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import tensorflow as tf

from harness.errors import UserError
from harness.pipelines.interface import batch_form, option
from harness.pipelines.order import Order
from harness.pipelines.queued import ArraySource, RecordSource, Source
from harness.runtime.interfaces import Batch, RunContext

_JOIN_S = 5.0


def build(context: RunContext) -> QueuePipeline:
    """The pipeline of one rank, its queue filling for ``fill_s`` seconds before this returns.

    Raises:
        UserError: no such data, or a queue that cannot hold a batch.
    """
    axes = context.axes
    capacity, batch, chunk = option(axes, "queue_capacity"), axes.batch_size, option(axes, "enqueue_samples")
    if capacity < batch + chunk:
        raise UserError(f"queue_capacity {capacity}: too little for a batch of {batch} and one enqueuing of {chunk}")
    source = ArraySource(context) if axes.encoding == "native" else RecordSource(context)
    pipeline = QueuePipeline(context, source)
    pipeline.fill()
    return pipeline


class QueuePipeline:
    """Batches of one rank out of a queue of samples."""

    def __init__(self, context: RunContext, source: Source):
        axes, form = context.axes, batch_form(context.axes)
        self._context, self._source = context, source
        self._batch_size = int(axes.batch_size)
        ranks = {"rank": context.ranks.rank, "world": context.ranks.world, "seed": context.spec.seed, "echo": axes.echo}
        self._chunks = Order(len(source), option(axes, "enqueue_samples"), **ranks)
        self._batches = Order(len(source), self._batch_size, **ranks)
        self._turns = threading.Condition()
        self._taken = self._enqueued = 0
        self._error: Exception | None = None
        self._stopped = False
        shape = (form.height, form.width, form.channels)
        with tf.device("/cpu:0"):
            self._queue = tf.queue.FIFOQueue(option(axes, "queue_capacity"), [tf.float32, tf.int64], [shape, ()])
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(axes.workers)]

    def fill(self) -> None:
        """Start the threads, and let them fill the queue as long as the point says."""
        for thread in self._threads:
            thread.start()
        if self._threads and (fill_s := option(self._context.axes, "fill_s")):
            self._context.clock.sleep(fill_s)

    def batches(self) -> Iterator[Batch]:
        index = 0
        while True:
            yield Batch(self._dequeue(), self._batches.fresh(index), self._batch_size)
            index += 1

    def _dequeue(self) -> Any:
        while not self._threads and int(self._queue.size()) < self._batch_size and self._error is None:
            self._enqueue_next()
        try:
            with tf.device("/cpu:0"):
                return self._queue.dequeue_many(self._batch_size)
        except (tf.errors.OutOfRangeError, tf.errors.CancelledError):
            raise self._error or UserError("the queue was closed") from None

    def _work(self) -> None:
        """An enqueue thread."""
        while not self._stopped:
            self._enqueue_next()

    def _enqueue_next(self) -> None:
        try:
            with self._turns:
                index = self._taken
                self._taken += 1
            samples = self._source.load(self._chunks.indices(index), self._chunks.random(index))
            self._in_turn(index, lambda: self._enqueue(samples))
        except tf.errors.CancelledError:
            self._stop()
        except Exception as error:
            self._error = self._error or error
            self._stop()

    def _in_turn(self, index: int, act: Callable[[], None]) -> None:
        """``act`` when all before ``index`` have acted."""
        with self._turns:
            self._turns.wait_for(lambda: self._stopped or self._enqueued == index)
        if not self._stopped:
            act()
        with self._turns:
            self._enqueued = index + 1
            self._turns.notify_all()

    def _enqueue(self, samples: Any) -> None:
        with tf.device("/cpu:0"):
            self._queue.enqueue_many(samples)

    def _stop(self) -> None:
        with self._turns:
            self._stopped = True
            self._turns.notify_all()
        self._queue.close(cancel_pending_enqueues=True)

    def occupancy(self) -> int:
        """Batches that the samples in the queue make."""
        return int(self._queue.size()) // self._batch_size

    def worker_cpus(self) -> list[int] | None:
        for thread in self._threads:
            if thread.native_id is not None:
                with suppress(OSError):
                    return sorted(os.sched_getaffinity(thread.native_id))
        return None

    def close(self) -> None:
        self._stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(_JOIN_S)
        self._threads = []
        self._source.close()
