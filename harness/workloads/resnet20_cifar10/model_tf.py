"""ResNet20 v1 on CIFAR-10 in Keras 3 on TensorFlow, as in the Keras example ``cifar10_resnet``.

274,442 parameters, of which 273,066 are trainable. The softmax is part of the loss, which is the same function.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from harness.runtime.interfaces import RunContext
from harness.workloads.classifier_tf import Classifier

CLASSES = 10
BLOCKS = 3
L2 = 1e-4
LEARNING_RATE = 1e-3


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


def build(context: RunContext) -> Classifier:
    """ResNet20 in training on one rank."""
    return Classifier(context, resnet20, lambda: keras.optimizers.Adam(LEARNING_RATE))
