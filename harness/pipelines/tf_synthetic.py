"""One batch, made once and delivered for ever: the rate at which nothing but the model holds training up."""

from __future__ import annotations

import tensorflow as tf

from harness.pipelines.made_up import Constant, made_up_batch
from harness.runtime.interfaces import RunContext


def build(context: RunContext) -> Constant:
    """The batch of one rank, in the memory of the host: copying it to the device stays part of each step."""
    images, labels = made_up_batch(context)
    with tf.device("/cpu:0"):
        return Constant((tf.constant(images), tf.constant(labels)), len(images))
