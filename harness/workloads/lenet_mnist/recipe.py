"""Samples of the LeNet-style network: ``x / 255 - 0.5``; no augmentation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.workloads.pixels import Pixels

PIXELS = Pixels(mean=(0.5,), std=(1.0,))


class Recipe:
    """Scaled once, when the data are loaded."""

    def prepare(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """uint8 ``(n, 28, 28, 1)`` → float32 in [-0.5, 0.5]."""
        return PIXELS.apply(images)

    def augment(self, images: NDArray[np.float32], random: np.random.Generator) -> NDArray[np.float32]:
        """The images as they are."""
        return images
