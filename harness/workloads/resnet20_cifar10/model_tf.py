"""ResNet20 v1 on CIFAR-10 in Keras 3 on TensorFlow, as in the Keras example ``cifar10_resnet``.

274,442 parameters, of which 273,066 are trainable. The softmax is part of the loss, which is the same function.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras import layers

from harness.runtime.interfaces import Batch, ModelFacts, RunContext, StepOutcome
from harness.workloads.training_tf import Trainer, count, digest

CLASSES = 10
BLOCKS = 3
L2 = 1e-4
LEARNING_RATE = 1e-3


def build(context: RunContext) -> Session:
    return Session(context)


def _conv(channels: int, kernel: int = 3, stride: int = 1) -> Any:
    return layers.Conv2D(
        channels,
        kernel,
        stride,
        padding="same",
        kernel_initializer="he_normal",
        kernel_regularizer=keras.regularizers.L2(L2),
    )


def _block(images: Any, channels: int, stride: int) -> Any:
    residual = layers.ReLU()(layers.BatchNormalization()(_conv(channels, stride=stride)(images)))
    residual = layers.BatchNormalization()(_conv(channels)(residual))
    if stride > 1:
        images = _conv(channels, kernel=1, stride=stride)(images)
    return layers.ReLU()(layers.add([images, residual]))


def resnet20() -> keras.Model:
    """``(b, 32, 32, 3)`` → logits ``(b, 10)``."""
    inputs = keras.Input((32, 32, 3))
    x = layers.ReLU()(layers.BatchNormalization()(_conv(16)(inputs)))
    for stack, channels in enumerate((16, 32, 64)):
        for block in range(BLOCKS):
            x = _block(x, channels, 2 if stack and not block else 1)
    x = layers.Flatten()(layers.AveragePooling2D(8)(x))
    return keras.Model(inputs, layers.Dense(CLASSES, kernel_initializer="he_normal")(x), name="resnet20_v1")


class Session:
    """ResNet20 in training on one rank."""

    def __init__(self, context: RunContext):
        self._trainer = Trainer(context)
        with self._trainer.on_device():
            self.model = resnet20()
            self._trainer.start_equal([self.model])
            optimizer = self._trainer.optimizer(keras.optimizers.Adam(LEARNING_RATE))
            update = self._trainer.update(self._loss, self.model.trainable_variables, optimizer)
        self._step = self._trainer.step_function(update)

    def _loss(self, images: Any, labels: Any) -> Any:
        logits = tf.cast(self.model(images, training=True), tf.float32)
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.reduce_mean(entropy) + tf.add_n(self.model.losses)

    def facts(self) -> ModelFacts:
        parameters, trainable = count([self.model])
        return ModelFacts(self.model.name, parameters, trainable)

    def to_device(self, batch: Batch) -> Batch:
        return Batch(self._trainer.tensors(batch.data), batch.samples)

    def step(self, batch: Batch) -> StepOutcome:
        self._trainer.exchange_s = 0.0
        with self._trainer.on_device():
            loss = self._step(*batch.data)
        self._trainer.synchronize()
        return StepOutcome(float(loss), self._trainer.exchange_s)

    def digest(self) -> str:
        return digest([self.model])

    def close(self) -> None:
        """Nothing is held beyond the process."""
