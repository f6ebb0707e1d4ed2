"""Handwritten digits that come with scikit-learn (1,797 real 8×8 images), brought to MNIST's 28×28.

They are the test part of the UCI set "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, 1998),
counts 0–16 of inked pixels in 4×4 blocks. More samples than images are made by small affine changes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image

from harness.datasets.dataset import Images, Split
from harness.errors import UserError

LABEL_NAMES = tuple(str(digit) for digit in range(10))
_SIDE = 28
_PADDED = 12  # 8 and a margin of 2, so that interpolation at the rim meets paper
_SCALE = 2.5  # 8 pixels become 20, the box that MNIST's digits fill
_TEST_PART = 5  # one image of five
# interpolation blurs the strokes; this steepening brings the share of ink near MNIST's 19 %
_INK = np.clip((np.arange(256) - 80.0) * 1.9, 0, 255).astype(np.uint8)


def make(seed: int, train: int, test: int) -> tuple[Split, Split]:
    """Training and test splits of that many samples.

    The real images are divided before any change is made, and in the file's order, in which one writer's digits
    stand together: no image, and hardly a writer, is on both sides.
    """
    sources, labels = _load()
    first_test = len(labels) - len(labels) // _TEST_PART
    return (
        _draw(sources[:first_test], labels[:first_test], train, np.random.default_rng([seed, 0])),
        _draw(sources[first_test:], labels[first_test:], test, np.random.default_rng([seed, 1])),
    )


def _load() -> tuple[Images, npt.NDArray[np.uint8]]:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise UserError("the digits come with scikit-learn; install it: pip install -e '.[data]'") from None
    bunch = load_digits()
    grey = np.rint(bunch.images * (255 / 16)).astype(np.uint8)
    return np.pad(grey, ((0, 0), (2, 2), (2, 2))), bunch.target.astype(np.uint8)


def _draw(sources: Images, labels: npt.NDArray[np.uint8], count: int, rng: np.random.Generator) -> Split:
    """``count`` samples: first every image once, unchanged but for its size, then changed copies."""
    order = np.concatenate([rng.permutation(len(labels)), rng.integers(len(labels), size=count)])[:count]
    angle = np.deg2rad(rng.uniform(-12, 12, count))
    zoom = rng.uniform(0.88, 1.1, count) * _SCALE
    shear = rng.uniform(-0.15, 0.15, count)
    shift = rng.uniform(-1.5, 1.5, (count, 2))
    plain = np.arange(count) < len(labels)
    angle[plain], zoom[plain], shear[plain], shift[plain] = 0, _SCALE, 0, 0
    images = np.empty((count, _SIDE, _SIDE, 1), np.uint8)
    for i, source in enumerate(order):
        coefficients = _inverse_affine(angle[i], zoom[i], shear[i], shift[i])
        picture = Image.fromarray(sources[source]).transform(
            (_SIDE, _SIDE), Image.Transform.AFFINE, coefficients, Image.Resampling.BICUBIC
        )
        images[i, ..., 0] = np.asarray(picture)
    return Split(_INK[images], labels[order])


def _inverse_affine(
    angle: float, zoom: float, shear: float, shift: npt.NDArray[np.float64]
) -> tuple[float, float, float, float, float, float]:
    """Pillow's six coefficients: where in the padded source each target pixel comes from."""
    cos, sin = np.cos(angle) / zoom, np.sin(angle) / zoom
    a, b, d, e = cos, sin + shear * cos, -sin, cos - shear * sin
    x, y = _SIDE / 2 + shift[0], _SIDE / 2 + shift[1]
    centre = _PADDED / 2
    return float(a), float(b), float(centre - a * x - b * y), float(d), float(e), float(centre - d * x - e * y)
