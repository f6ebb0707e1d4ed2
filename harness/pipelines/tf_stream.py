"""What all tf.data pipelines share: threads, the counted prefetch buffer, echoing, batches for the training loop.

``parallel_threads`` sizes tf.data's private pool of threads; unset it has one for each of the rank's cores, as other
pools have. ``workers`` are the parallel calls of the map that reads and decodes; 0: one for each of those threads.
tf.data has no loader that works in the training thread, unless nothing is buffered and nothing is parallel.
"""

from __future__ import annotations

import itertools
import os
import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from harness.errors import UserError
from harness.pipelines.corrupt import Losses, Lost
from harness.pipelines.interface import option
from harness.pipelines.tf_images import random_view
from harness.pipelines.tf_sieve import Sieve, plain, reason
from harness.runtime.interfaces import Batch, RunContext

AUTOTUNE = int(tf.data.AUTOTUNE)
_END_S = 3.0

#: builds the batches ``(images, labels[, fresh])`` of a pipeline; a sieve lets go by what cannot be decoded
Recipe = Callable[[Sieve | None], tf.data.Dataset]


def parallel_calls(context: RunContext) -> int:
    """Parallel calls of the map that reads and decodes."""
    return int(context.axes.workers or context.threads)


def shuffled(dataset: tf.data.Dataset, context: RunContext, default: int, salt: int = 0) -> tf.data.Dataset:
    """``dataset`` through a shuffle buffer, in a new order each epoch; the axis's size, else ``default`` elements."""
    size = default if context.axes.shuffle_buffer is None else context.axes.shuffle_buffer
    if size == 0:
        return dataset
    return dataset.shuffle(size, seed=context.spec.seed + 1000 * salt, reshuffle_each_iteration=True)


class TfStream:
    """Batches of one rank from a tf.data pipeline.

    ``prefetch`` 0 puts no buffer at the end of the pipeline, so the training thread waits for each batch's making;
    :data:`AUTOTUNE` leaves its depth to tf.data. How many batches the buffer holds, tf.data's model of the iterator
    says. A counter in a map in front of the buffer would too, but cost 1 % of a step of ResNet20 on CIFAR-10: that map
    made the training thread meet the Python function of ``tf_memory`` in its wait for the interpreter's lock.
    """

    def __init__(self, context: RunContext, recipe: Recipe, *, prefetch: int, samples: int, fuse: bool = False):
        self._context = context
        self._recipe = recipe
        self._prefetch = prefetch if context.axes.prefetch is None else int(context.axes.prefetch)
        self._samples = samples
        skip = option(context.axes, "corrupt") == "skip"
        self._losses = Losses(skip, context.note)
        self._threads: list[int] = []
        self._iterator: Any = None
        with tf.device("/cpu:0"):
            self._sieve = Sieve(samples) if skip else None
            batches = recipe(self._sieve)
            if self._prefetch:
                batches = batches.prefetch(self._prefetch)
            self._dataset = batches.with_options(_options(context.threads, fuse))

    def batches(self) -> Iterator[Batch]:
        size = int(self._context.axes.batch_size)
        before = _threads()
        with tf.device("/cpu:0"):
            self._iterator = iter(self._dataset)
        for number in itertools.count():
            images, labels, *fresh = self._next()
            if not number:
                self._threads = sorted(_threads() - before)
            self._report()
            yield Batch((images, labels), int(np.sum(fresh[0].numpy())) if fresh else size, size)

    def _next(self) -> Any:
        try:
            return next(self._iterator)
        except StopIteration:
            raise UserError(f"none of {self._samples} images in a row could be read or decoded") from None
        except tf.errors.DataLossError as error:  # the checksum of a record, which names no file
            path = str(self._context.data_path)
            raise UserError(
                f"{path}: a shard is damaged: {reason(error)}; find it: harness data verify {shlex.quote(path)}"
            ) from None
        except tf.errors.OpError as error:
            self._losses.add([self._what_failed(error)])
            raise

    def _report(self) -> None:
        if self._sieve is not None:
            self._losses.add(Lost(name, "cannot be read or decoded") for name in self._sieve.caught())

    def _what_failed(self, error: tf.errors.OpError) -> Lost:
        """Which image it was: tf.data does not say, so the same batches are made again with a sieve under them."""
        with tf.device("/cpu:0"):
            sieve = Sieve(self._samples)
            again = iter(self._recipe(sieve).with_options(_options(self._context.threads, False)))
            for _ in range(2 + self._samples // int(self._context.axes.batch_size)):
                next(again, None)
                if names := sieve.caught():
                    return Lost(names[0], reason(error))
        raise error

    def occupancy(self) -> int | None:
        """Batches in the prefetch buffer, the pipeline's last stage; 0 before the first batch is asked for."""
        if not self._prefetch:
            return None
        if self._iterator is None:
            return 0
        model = tf.data.experimental.get_model_proto(self._iterator)
        (last,) = model.nodes[model.output].inputs
        return int(model.nodes[last].buffered_elements)

    def worker_cpus(self) -> list[int] | None:
        """Those of a thread that tf.data started: they have no names, so those that came with the first batch."""
        for thread in self._threads:
            with suppress(OSError):  # it has ended
                return sorted(os.sched_getaffinity(thread))
        return None

    def close(self) -> None:
        """Ends tf.data's threads, by dropping the last reference to the iterator.

        That waits for calls in flight and, seen with TensorFlow 2.21 and pools of one thread, may wait for ever. So it
        happens in a thread of its own, which after a while is left behind for the process's end.
        """
        self._report()
        self._losses.summarise()
        held, self._iterator = [self._iterator], None
        ending = threading.Thread(target=held.clear, daemon=True)
        ending.start()
        ending.join(_END_S)


def _threads() -> set[int]:
    return {int(task.name) for task in Path("/proc/self/task").iterdir()}


def _options(threads: int, fuse: bool) -> tf.data.Options:
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    options.deterministic = True
    # tf.data would otherwise put a buffer where the point says that there is none
    options.experimental_optimization.inject_prefetch = False
    options.experimental_optimization.map_and_batch_fusion = fuse
    return options


def mapped(
    dataset: tf.data.Dataset, name: Callable[..., Any], load: Callable[..., Any], calls: int, sieve: Sieve | None
) -> tf.data.Dataset:
    """``dataset.map(load)`` in parallel, through the sieve where there is one."""
    if sieve is not None:
        return sieve.map(dataset, name, load, calls)
    return dataset.map(plain(load), num_parallel_calls=calls)


def finished(context: RunContext) -> Callable[[Any, Any], Any]:
    """From the images ``(k, h, w, c)`` of one sample and its label to ``(images, labels)``: augmented and echoed.

    Example echoing repeats each image ``echo`` times in a row, before its augmentation, so that each copy gets its own,
    or after it. There is then a third part, 1 for the first of each and 0 for its copies.
    """
    times = int(context.axes.echo)
    anew = option(context.axes, "echo_at") == "before_augment"
    augment = random_view if option(context.axes, "augment") else _as_they_are

    def finish(images: Any, label: Any) -> Any:
        fresh = tf.shape(images)[0]
        if times == 1:
            images = augment(images)
        else:
            images = augment(tf.repeat(images, times, axis=0)) if anew else tf.repeat(augment(images), times, axis=0)
        labels = tf.repeat(label[None], fresh * times, axis=0)
        return (
            (images, labels) if times == 1 else (images, labels, tf.tile(tf.one_hot(0, times, dtype=tf.int64), [fresh]))
        )

    return finish


def _as_they_are(images: Any) -> Any:
    return images
