"""Images wholly in memory through tf.data.

MNIST and CIFAR-10 are prepared once by the workload's recipe; the batches are those of the ``memory`` pipeline, made in
``workers`` parallel calls of a Python function, of which only what NumPy does outside Python's lock is parallel.
Photographs and X-rays were decoded and resized ahead (encoding npy); each rank reads its own part of them into memory,
and TensorFlow gathers them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from harness.catalog import DATASETS, lookup, split_dataset
from harness.errors import UserError
from harness.pipelines.held import held_part
from harness.pipelines.interface import batch_form
from harness.pipelines.stream import BatchStream, load_stream
from harness.pipelines.tf_images import WHOLE, crops
from harness.pipelines.tf_sieve import Sieve, plain
from harness.pipelines.tf_stream import TfStream, finished, mapped, parallel_calls, shuffled
from harness.runtime.interfaces import RunContext

PREFETCH = 2
#: the array, what TensorFlow copies it to so that nobody changes it, and for a moment what it aligns that to
_COPIES = 3


def build(context: RunContext) -> TfStream:
    """The pipeline of one rank. ``prefetch`` unset: 2 batches.

    Raises:
        UserError: no such data, fewer samples than ranks, or more than the node has memory for.
    """
    axes = context.axes
    if axes.encoding == "native" and not lookup(DATASETS, split_dataset(axes.dataset)[1], "data set").in_memory:
        raise UserError(
            f"{axes.dataset} is held in memory decoded: harness data convert {axes.dataset} --encoding npy, and set "
            "encoding: npy"
        )
    if axes.encoding == "native":
        return TfStream(context, Streamed(context, load_stream(context)).batches, prefetch=PREFETCH, samples=0)
    held = _Held(context, *held_part(context, _COPIES))
    return TfStream(context, held.batches, prefetch=PREFETCH, samples=len(held.images))


@dataclass(frozen=True)
class Streamed:
    """Batches of a stream of prepared arrays."""

    context: RunContext
    stream: BatchStream

    def batches(self, _: Sieve | None) -> tf.data.Dataset:
        form, size = batch_form(self.context.axes), self.context.axes.batch_size

        def make(index: Any) -> Any:
            images, labels, fresh = tf.numpy_function(self._batch, [index], (tf.float32, tf.int64, tf.int64))
            images = tf.ensure_shape(images, (size, form.height, form.width, form.channels))
            batch = images, tf.ensure_shape(labels, (size,))
            return batch if self.context.axes.echo == 1 else (*batch, fresh)

        return tf.data.Dataset.counter().map(plain(make), num_parallel_calls=parallel_calls(self.context))

    def _batch(self, index: NDArray[np.int64]) -> tuple[Any, Any, Any]:
        return *self.stream[int(index)], np.int64(self.stream.fresh(int(index)))


@dataclass(frozen=True)
class _Held:
    """A rank's part of the images, uint8 ``(n, h, w, c)``, with labels as the batch contract has them."""

    context: RunContext
    images: NDArray[np.uint8]
    labels: NDArray[Any]

    def batches(self, sieve: Sieve | None) -> tf.data.Dataset:
        form, finish = batch_form(self.context.axes), finished(self.context)
        images, labels = tf.constant(self.images), tf.constant(self.labels)
        fits = self.images.shape[1:] == (form.height, form.width, form.channels)

        def load(index: Any) -> Any:
            image = images[index][None]
            return finish(image if fits else crops(image[0], tf.constant(WHOLE), form), labels[index])

        numbers = shuffled(tf.data.Dataset.range(len(self.images)), self.context, len(self.images)).repeat()
        loaded = mapped(numbers, tf.strings.as_string, load, parallel_calls(self.context), sieve)
        return loaded.unbatch().batch(self.context.axes.batch_size, drop_remainder=True)
