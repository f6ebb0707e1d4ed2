"""How decoded pixels become a model's input; framework-free, so that host and device compute the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pixels:
    """``(x / 255 - mean) / std``, with one mean and std per channel, or one for all."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def scale(self) -> tuple[float, ...]:
        """What a pixel is multiplied by."""
        return tuple(1 / (255 * std) for std in self.std)

    @property
    def offset(self) -> tuple[float, ...]:
        """What is added then."""
        return tuple(-mean / std for mean, std in zip(self.mean, self.std, strict=True))

    def apply(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """uint8 ``(…, c)`` → float32 of the same shape."""
        scaled = np.multiply(images, np.array(self.scale, np.float32), dtype=np.float32)
        scaled += np.array(self.offset, np.float32)
        return scaled
