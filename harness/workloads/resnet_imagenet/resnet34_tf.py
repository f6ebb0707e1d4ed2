"""ResNet34 in Keras, which ``keras.applications`` does not have, in the form that ALCF measured.

21,819,560 parameters, of which 21,804,328 are trainable, with 1000 outputs. The counts say what the source's text does
not: all convolutions but the first have biases, and the 1×1 convolutions of the shortcuts no batch normalisation:
21,819,560 - 21,804,328 is twice the 7,616 channels of all others.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))


def _block(images: Any, channels: int, stride: int) -> Any:
    residual = layers.Conv2D(channels, 3, stride, padding="same")(images)
    residual = layers.ReLU()(layers.BatchNormalization()(residual))
    residual = layers.BatchNormalization()(layers.Conv2D(channels, 3, padding="same")(residual))
    if stride > 1:
        images = layers.Conv2D(channels, 1, stride)(images)
    return layers.ReLU()(layers.add([images, residual]))


def resnet34(height: int, width: int, channels: int, outputs: int) -> keras.Model:
    """``(b, height, width, channels)`` → logits ``(b, outputs)``."""
    inputs = keras.Input((height, width, channels))
    x = layers.Conv2D(64, 7, 2, padding="same", use_bias=False)(inputs)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.MaxPooling2D(3, 2, padding="same")(x)
    for stage, (width_of_stage, blocks) in enumerate(STAGES):
        for block in range(blocks):
            x = _block(x, width_of_stage, 2 if stage and not block else 1)
    return keras.Model(inputs, layers.Dense(outputs)(layers.GlobalAveragePooling2D()(x)), name="resnet34")
