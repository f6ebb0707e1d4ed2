"""numpy shards: ``….images.npy`` (n, height, width, channels) uint8 and ``….labels.npy`` (n,) or (n, flags) int64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.datasets.convert.shard import Shard, produced, whole_file
from harness.datasets.parts import Produced

IMAGES, LABELS = ".images.npy", ".labels.npy"


def write(shard: Shard) -> list[Produced]:
    """A shard of pixels, to be memory-mapped."""
    images, labels = [], []
    for sample, pixels in shard.decoded():
        images.append(pixels)
        labels.append(sample.labels)
    flat = np.array(labels, np.int64)
    arrays: dict[str, npt.NDArray[Any]] = {IMAGES: np.stack(images) if images else np.empty((0, 0, 0, 0), np.uint8)}
    arrays[LABELS] = flat[:, 0] if flat.ndim == 2 and flat.shape[1] == 1 else flat
    return [_save(shard.root, shard.stem + suffix, array) for suffix, array in arrays.items()]


def _save(root: Path, file: str, array: npt.NDArray[Any]) -> Produced:
    with whole_file(root, file) as temporary, temporary.open("wb") as stream:
        np.lib.format.write_array(stream, array, allow_pickle=False)
    return produced(root, file, len(array) if file.endswith(IMAGES) else 0)
