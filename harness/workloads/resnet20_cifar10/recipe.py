"""Samples of ResNet20 on CIFAR-10, as in the Keras example ``cifar10_resnet``.

Once: /255 minus the mean image of the training set. Per batch: shifts of up to a tenth of the height and width, not
in whole pixels, and a horizontal flip half of the time, as Keras's ``ImageDataGenerator`` does with
``width_shift_range=0.1, height_shift_range=0.1, horizontal_flip=True, fill_mode="nearest"``. That class interpolates
image by image through SciPy; this is the same arithmetic, bilinear with repeated border pixels, for a batch at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SHIFT = 0.1
Floats = NDArray[np.float32]


class Recipe:
    """Mean-image subtraction, then random shifts and flips."""

    def prepare(self, images: NDArray[np.uint8]) -> Floats:
        """uint8 ``(n, h, w, c)`` → float32, /255 minus the mean over n."""
        scaled: Floats = np.divide(images, np.float32(255), dtype=np.float32)
        scaled -= scaled.mean(axis=0, dtype=np.float64).astype(np.float32)
        return scaled

    def augment(self, images: Floats, random: np.random.Generator) -> Floats:
        """Shifted and flipped copies of ``images`` ``(b, h, w, c)``."""
        count, height, width, _ = images.shape
        down = random.uniform(-SHIFT, SHIFT, count) * height
        right = random.uniform(-SHIFT, SHIFT, count) * width
        flip = np.less(random.random(count), 0.5)
        return shift_and_flip(images, down, right, flip)


def shift_and_flip(
    images: Floats, down: NDArray[np.float64], right: NDArray[np.float64], flip: NDArray[np.bool_]
) -> Floats:
    """Pixel (y, x) becomes the input's (y + down, x + right), mirrored in x where ``flip``, all ``(b,)``."""
    count, height, width, _ = images.shape
    columns = np.broadcast_to(np.arange(width), (count, width))
    columns = np.where(flip[:, None], columns[:, ::-1], columns)
    shifted = _interpolate(images, np.arange(height) + down[:, None])
    turned = _interpolate(shifted.transpose(0, 2, 1, 3), columns + right[:, None])
    return np.ascontiguousarray(turned.transpose(0, 2, 1, 3))


def _interpolate(images: Floats, places: NDArray[np.float64]) -> Floats:
    """Linear interpolation along axis 1 of ``(b, n, m, c)`` at ``places`` ``(b, n)``; beyond the border, the border."""
    last = images.shape[1] - 1
    places = places.clip(0, last)
    low = places.astype(np.intp)
    high = np.minimum(low + 1, last)
    share = (places - low).astype(np.float32)[:, :, None, None]
    image = np.arange(len(images))[:, None]
    below: Floats = images[image, low]
    above: Floats = images[image, high]
    above -= below
    above *= share
    above += below
    return above
