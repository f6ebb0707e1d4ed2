"""A LeNet-style network on MNIST in Keras 3 on TensorFlow: 3,274,634 parameters, Adam at 1e-4.

Two 5×5 convolutions with 32 and 64 channels, each with ReLU and 2×2 max-pooling, a hidden layer of 1024 and ten
outputs; kernels start as Glorot's, which the source leaves open. The softmax is part of the loss.
"""

from __future__ import annotations

import keras
from keras import layers

from harness.runtime.interfaces import RunContext
from harness.workloads.classifier_tf import Classifier
from harness.workloads.lenet_mnist.recipe import PIXELS

CLASSES = 10
HIDDEN = 1024
LEARNING_RATE = 1e-4


def lenet() -> keras.Model:
    """``(b, 28, 28, 1)`` → logits ``(b, 10)``."""
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(HIDDEN, activation="relu"),
            layers.Dense(CLASSES),
        ],
        name="lenet",
    )


def build(context: RunContext) -> Classifier:
    """The network in training on one rank."""
    return Classifier(
        context,
        lenet,
        lambda: keras.optimizers.Adam(LEARNING_RATE),
        pixels=PIXELS,
        details={"optimizer": "adam", "learning_rate": LEARNING_RATE},
    )
