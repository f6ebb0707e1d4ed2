"""One batch, made once and delivered for ever: the rate at which nothing but the model holds training up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from harness.pipelines.made_up import made_up_batch
from harness.runtime.interfaces import Batch, RunContext


def build(context: RunContext) -> Constant:
    """The batch of one rank, in the memory of the host: copying it to the device stays part of each step."""
    images, labels = made_up_batch(context)
    with tf.device("/cpu:0"):
        return Constant((tf.constant(images), tf.constant(labels)), len(images))


class Constant:
    """The same batch again and again; there is no buffer and no worker."""

    def __init__(self, data: Any, samples: int):
        self._batch = Batch(data, samples)

    def batches(self) -> Iterator[Batch]:
        while True:
            yield self._batch

    def occupancy(self) -> None:
        return

    def worker_cpus(self) -> None:
        return

    def close(self) -> None:
        """Nothing runs."""
