"""Synthetic photographs with the statistics of real ones, which is what makes decoding them cost the same.

Noise or flat patterns compress and decode nothing like a photograph, so each image is a view of one of the
photographs that come with scikit-image and scikit-learn: a crop seen in perspective, mirrored, recoloured, relit and
given the grain of a sensor. Everything follows from the random generator that is passed in.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from PIL import Image

from harness.datasets.origins.photos import SOURCES, source_path

_GRAIN_SIDE = 1024
_TILT = 0.12  # corners move by at most this part of the view's size
_LEAST_LEVEL_SIDE = 128

Matrix = tuple[float, ...]


@dataclass(frozen=True)
class Look:
    """What the images of one class share: their photograph, where it is looked at, and their colours."""

    source: int
    centre: tuple[float, float]
    hue: float


def look_of(class_number: int, seed: int) -> Look:
    """The look of a class; neighbouring classes come from different photographs."""
    rng = np.random.default_rng([seed, 7, class_number])
    centre = (float(rng.uniform(0.25, 0.75)), float(rng.uniform(0.25, 0.75)))
    return Look(class_number % len(SOURCES), centre, float(rng.uniform(-1.2, 1.2)))


def photograph(look: Look, width: int, height: int, rng: np.random.Generator) -> Image.Image:
    """An RGB image of that many pixels, in the look of its class."""
    zoom = float(np.exp(rng.normal(0.0, 0.3)))  # target pixels for each pixel of the photograph
    view = _view(look, width, height, zoom, rng)
    view = view.convert("RGB", _recolour(look.hue + rng.normal(0, 0.15), rng.uniform(0.75, 1.2), rng.normal(0, 8)))
    return _grainy(view, float(np.exp(rng.normal(0.75, 0.6))), rng)


def jpeg_bytes(image: Image.Image, quality: int, subsampling: int = 0) -> bytes:
    """``image`` as a JPEG file; ``subsampling`` 0 is 4:4:4, 2 is 4:2:0."""
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=quality, subsampling=subsampling)
    return stream.getvalue()


def png_bytes(image: Image.Image, level: int = 6) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "PNG", compress_level=level)
    return stream.getvalue()


@lru_cache(maxsize=len(SOURCES))
def _levels(source: int) -> tuple[Image.Image, ...]:
    """A photograph and its halvings: shrinking from the nearest one keeps fine detail from turning into noise."""
    photo = Image.open(source_path(*list(SOURCES.values())[source])).convert("RGB")
    levels = [photo]
    while min(levels[-1].size) >= 2 * _LEAST_LEVEL_SIDE:
        levels.append(levels[-1].reduce(2))
    return tuple(levels)


def _view(look: Look, width: int, height: int, zoom: float, rng: np.random.Generator) -> Image.Image:
    """A quadrilateral of the photograph, drawn as a width×height rectangle."""
    levels = _levels(look.source)
    full_width, full_height = levels[0].size
    fit = min(full_width * 0.98 / width, full_height * 0.98 / height)
    scale = min(1 / zoom, fit)  # photograph pixels for each target pixel
    level = min(int(np.log2(max(scale, 1.0))), len(levels) - 1)
    photo, scale = levels[level], scale / 2**level
    half = np.array([width, height]) * scale / 2
    room = np.array(photo.size) - 2 * half
    centre = half + room * np.clip(np.array(look.centre) + rng.normal(0, 0.2, 2), 0, 1)
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], dtype=float)
    corners = centre + signs * half * (1 - rng.uniform(0, _TILT, (4, 2)))
    if rng.random() < 0.5:
        corners = corners[[1, 0, 3, 2]]
    coefficients = _perspective(corners, width, height)
    return photo.transform((width, height), Image.Transform.PERSPECTIVE, coefficients, Image.Resampling.BICUBIC)


def _perspective(corners: npt.NDArray[np.float64], width: int, height: int) -> list[float]:
    """Pillow's eight coefficients, which carry the corners of the target rectangle to ``corners`` (4, 2)."""
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=float)
    rows, values = [], []
    for (x, y), (u, v) in zip(target, corners, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    solved: list[float] = np.linalg.solve(np.array(rows), np.array(values)).tolist()
    return solved


def _recolour(hue: float, contrast: float, brightness: float) -> Matrix:
    """Pillow's 3×4 colour matrix: a turn by ``hue`` radians about the grey axis, then contrast and brightness."""
    cos, sin = np.cos(hue), np.sin(hue) / np.sqrt(3)
    turn = np.full((3, 3), (1 - cos) / 3) + cos * np.eye(3)
    turn += sin * np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    shift = np.full((3, 1), 128 * (1 - contrast) + brightness)
    return tuple(float(value) for value in np.hstack([turn * contrast, shift]).ravel())


@lru_cache(maxsize=1)
def _grain() -> npt.NDArray[np.float32]:
    """Sensor noise of deviation 1, mostly common to the three colours, twice as large as a tile each way."""
    rng = np.random.default_rng(20_050_720)
    grey = rng.standard_normal((_GRAIN_SIDE, _GRAIN_SIDE, 1), np.float32)
    tile = 0.9 * grey + 0.44 * rng.standard_normal((_GRAIN_SIDE, _GRAIN_SIDE, 3), np.float32)
    return tile.astype(np.float32)


def _grainy(view: Image.Image, deviation: float, rng: np.random.Generator) -> Image.Image:
    """``view`` with grain of that deviation, in grey levels."""
    rows, columns = ((int(rng.integers(_GRAIN_SIDE)) + np.arange(n)) % _GRAIN_SIDE for n in (view.height, view.width))
    pixels = np.asarray(view, np.float32) + deviation * _grain()[rows][:, columns]
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
