"""Our training step in TensorFlow asks for the operations that Keras's own asks for, and for no others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

pytest.importorskip("tensorflow")

pytestmark = pytest.mark.framework
#: the mean of the loss is one operation here and three in Keras
OF_THE_MEAN = {"Mean": 1, "RealDiv": 1, "AddN": 1}


def operations(function: Any, *signature: Any) -> Counter[str]:
    """How often each type of operation stands in the traced function."""
    graph = function.get_concrete_function(*signature).graph
    return Counter(operation.type for operation in graph.get_operations())


def test_resnet20_takes_no_operation_that_keras_does_not(maker):
    import keras
    import tensorflow as tf

    from harness.workloads.resnet20_cifar10.model_tf import resnet20

    session = maker.session(maker.context("resnet20_cifar10", "tensorflow", batch_size=4))
    images, labels = tf.TensorSpec((4, 32, 32, 3), tf.float32), tf.TensorSpec((4,), tf.int64)
    ours = operations(session._step, images, labels)

    model = resnet20()
    model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    keras_own = operations(tf.function(model.train_step), (images, labels))

    assert ours["Conv2D"] == 21
    assert dict(ours - keras_own - Counter(OF_THE_MEAN)) == {}
    assert sum(ours.values()) <= sum(keras_own.values())
