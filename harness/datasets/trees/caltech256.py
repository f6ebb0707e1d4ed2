"""A tree like Caltech-256's: 257 classes of very different sizes, small JPEGs, some grey, and strays.

Aims (the real set): mean 371×326 pixels, 37 KiB, 80–827 images a class, 1.4 % grey.
"""

from __future__ import annotations

import bisect
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

import numpy as np

from harness.datasets.caltech256 import FOLDER
from harness.datasets.manifest import Request
from harness.datasets.parts import Produced, store
from harness.datasets.photographs import jpeg_bytes, look_of, photograph
from harness.datasets.trees import TreeMaker, TreePart, spread

CLASSES = 257
GREY = 0.014
#: strays of the real set: a file without suffix among the dogs, another among the spiders
STRAYS = (f"{FOLDER}/056.pattern/greg", f"{FOLDER}/198.pattern/RENAME2")


def images(part: TreePart) -> list[Produced]:
    """Write the images of a part."""
    return [_image(part, index) for index in range(part.start, part.stop)]


def extras(root: Path, request: Request) -> list[Produced]:
    """The strays."""
    return [store(root, file, b"not an image\n") for file in STRAYS]


MAKER = TreeMaker(images, extras, mean_bytes=37_900)


@lru_cache(maxsize=2)
def _class_ends(seed: int, total: int) -> tuple[int, ...]:
    """Where each class's images end: 80 at least in the full set, 119 on average, the last class (clutter) largest."""
    rng = np.random.default_rng([seed, 5])
    weights = np.clip(80 * np.exp(rng.exponential(0.34, CLASSES)), 80, 800)
    weights[-1] = 827
    return tuple(accumulate(spread(total, weights.tolist())))


def _image(part: TreePart, index: int) -> Produced:
    request = part.request
    rng = np.random.default_rng([request.seed, 2, index])
    ends = _class_ends(request.seed, request.counts["train"])
    label = bisect.bisect_right(ends, index)
    number = index - (ends[label - 1] if label else 0) + 1
    width, height = image_size(rng)
    picture = photograph(look_of(label, request.seed), width, height, rng)
    if rng.random() < GREY or index == request.counts["train"] // 2:
        picture = picture.convert("L")
    content = jpeg_bytes(picture, int(rng.choice([75, 85, 92, 95], p=[0.3, 0.3, 0.25, 0.15])), subsampling=2)
    return store(part.root, f"{FOLDER}/{label + 1:03d}.pattern/{label + 1:03d}_{number:04d}.jpg", content)


def image_size(rng: np.random.Generator) -> tuple[int, int]:
    """(width, height): web images of all sizes, mostly 150 to 500 pixels, with a long tail."""
    longer = float(np.clip(np.exp(rng.normal(5.85, 0.45)), 120, 3000))
    shorter = longer * rng.uniform(0.6, 1.0)
    wide, high = int(longer), int(shorter)
    return (wide, high) if rng.random() < 0.8 else (high, wide)
