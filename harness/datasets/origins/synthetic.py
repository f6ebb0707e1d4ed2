"""Learnable patterns from numpy alone: a smooth template for each class, shifted, relit and overlaid with noise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.datasets.dataset import Images, Split

_CLASSES = 10
_POOL = 512  # noise images, drawn once and reused at random offsets
_CHUNK = 1000
_SHIFT = 3  # pixels at most
_FOREGROUND = 0.19  # part of an MNIST image that is ink

Floats = npt.NDArray[np.float64]


def make(seed: int, train: int, test: int, shape: tuple[int, int, int]) -> tuple[Split, Split]:
    """Training and test splits of images of ``shape`` (height, width, channels) in ten classes.

    Grey images are mostly empty, as handwriting is; colour images have the 1/f spectrum of natural images.
    """
    rng = np.random.default_rng([seed, 2])
    templates, pool = _smooth(rng, _CLASSES, shape), _smooth(rng, _POOL, shape)
    return (
        _draw(templates, pool, train, np.random.default_rng([seed, 0])),
        _draw(templates, pool, test, np.random.default_rng([seed, 1])),
    )


def _smooth(rng: np.random.Generator, count: int, shape: tuple[int, int, int]) -> Floats:
    """``count`` periodic random fields with mean 0 and deviation 1; their channels go largely together."""
    height, width, channels = shape
    frequency = np.hypot(np.fft.fftfreq(height)[:, None] * height, np.fft.fftfreq(width)[None] * width)
    slope = 1 if channels == 3 else 2  # ink comes in blobs and strokes: smoother than a photograph
    weight = np.where(frequency > 0, np.maximum(frequency, 1.0) ** -slope, 0)
    grey = rng.standard_normal((count, 1, height, width))
    spectrum = np.fft.fft2(grey + 0.4 * rng.standard_normal((count, channels, height, width))) * weight
    fields = np.fft.ifft2(spectrum).real.transpose(0, 2, 3, 1)
    normal: Floats = fields / fields.std(axis=(1, 2, 3), keepdims=True)
    return normal


def _draw(templates: Floats, pool: Floats, count: int, rng: np.random.Generator) -> Split:
    labels = rng.permutation(np.arange(count) % _CLASSES).astype(np.uint8)
    chunks = [_render(templates, pool, labels[i : i + _CHUNK], rng) for i in range(0, count, _CHUNK)]
    empty = np.empty((0, *templates.shape[1:]), np.uint8)
    return Split(np.concatenate([empty, *chunks]), labels)


def _render(templates: Floats, pool: Floats, labels: npt.NDArray[np.uint8], rng: np.random.Generator) -> Images:
    count, (height, width, channels) = len(labels), templates.shape[1:]
    field = _rolled(templates, labels, rng.integers(-_SHIFT, _SHIFT + 1, (count, 2)))
    noise = _rolled(pool, rng.integers(len(pool), size=count), rng.integers(0, min(height, width), (count, 2)))
    gain = rng.uniform(0.8, 1.2, (count, 1, 1, 1))
    mixed = (field + 0.5 * noise) * gain
    if channels == 1:
        ink = mixed - _margin(height, width)
        ink -= np.quantile(ink, 1 - _FOREGROUND, axis=(1, 2, 3), keepdims=True)
        return np.clip(ink * 400, 0, 255).astype(np.uint8)
    grain = rng.standard_normal(mixed.shape) * 4
    return np.clip(120 + 45 * mixed + grain, 0, 255).astype(np.uint8)


def _margin(height: int, width: int) -> Floats:
    """(height, width, 1): 0 in the middle, growing towards the rim, which handwriting leaves empty."""
    rows, columns = (np.linspace(-1, 1, edge) for edge in (height, width))
    margin: Floats = 4 * np.maximum(np.hypot(rows[:, None], columns[None]) - 0.4, 0)[..., None]
    return margin


def _rolled(fields: Floats, which: npt.NDArray[np.integer], shift: npt.NDArray[np.integer]) -> Floats:
    """``fields[which]``, each rolled by its ``shift`` (rows, columns)."""
    height, width = fields.shape[1:3]
    rows = (np.arange(height)[None, :, None] - shift[:, 0, None, None]) % height
    columns = (np.arange(width)[None, None, :] - shift[:, 1, None, None]) % width
    rolled: Floats = fields[which[:, None, None], rows, columns]
    return rolled
