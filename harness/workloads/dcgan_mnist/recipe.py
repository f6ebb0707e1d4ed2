"""Samples of the DCGAN: pixels to [-1, 1], the range of the generator's tanh; no augmentation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Recipe:
    """Scaled once, when the data are loaded."""

    def prepare(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """uint8 ``(n, 28, 28, 1)`` → float32 in [-1, 1]."""
        scaled: NDArray[np.float32] = np.divide(images, np.float32(127.5), dtype=np.float32)
        scaled -= 1
        return scaled

    def augment(self, images: NDArray[np.float32], random: np.random.Generator) -> NDArray[np.float32]:
        """The images as they are."""
        return images
