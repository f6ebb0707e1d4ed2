"""From an encoded image to pixels of the size that is asked for, on the CPU; no framework is imported here.

:class:`PillowDecoder` decodes the whole image and resizes it, as torchvision's loader and transforms do.
:class:`FastDecoder` lets libjpeg-turbo decode no more pixels than are needed; see docs/performance.md.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from harness.datasets.imagenet import WHOLE_IMAGE, Box
from harness.errors import UserError

Pixels = NDArray[np.uint8]

#: resizes pixels ``(h, w, c)`` to a height and width
Resize = Callable[[Pixels, int, int], Pixels]
_MODES = {1: "L", 3: "RGB"}
_JPEG_MAGIC = b"\xff\xd8\xff"
_NOT_AN_IMAGE = (OSError, SyntaxError, ValueError, UnidentifiedImageError, Image.DecompressionBombError)


class Undecodable(Exception):
    """Content that is no image, or a broken one."""


class Decoder(Protocol):
    """Makes crops of an encoded image; safe in several threads at once."""

    def crops(self, content: bytes, boxes: Sequence[Box], height: int, width: int, channels: int) -> list[Pixels]:
        """One crop for each box (none: the whole image), resized: uint8 ``(height, width, channels)``.

        Raises:
            Undecodable: the image cannot be decoded.
        """


class PillowDecoder:
    """Whole images by Pillow, bilinear with antialiasing."""

    def crops(self, content: bytes, boxes: Sequence[Box], height: int, width: int, channels: int) -> list[Pixels]:
        try:
            image = Image.open(io.BytesIO(content)).convert(_MODES[channels])
        except _NOT_AN_IMAGE as error:
            raise Undecodable(f"cannot be decoded: {error}") from None
        return [resized(image, box, height, width, channels) for box in boxes or (WHOLE_IMAGE,)]


class FastDecoder:
    """libjpeg-turbo through simplejpeg, scaled while decoding where every crop keeps as many pixels as it needs.

    The inverse cosine transform gives images of half the sides or less for less than whole ones; ratios between a half
    and one cost more than they save. What is no RGB or grey JPEG (PNGs, CMYK) is left to Pillow.
    """

    def __init__(self, resize: Resize) -> None:
        try:
            import simplejpeg
        except ModuleNotFoundError:
            raise UserError(
                'pipeline torch_fast needs simplejpeg; install it for the ranks: pip install "simplejpeg>=1.7"'
            ) from None
        self._library: Any = simplejpeg
        self._resize = resize
        self._pillow = PillowDecoder()

    def crops(self, content: bytes, boxes: Sequence[Box], height: int, width: int, channels: int) -> list[Pixels]:
        if not content.startswith(_JPEG_MAGIC):
            return self._pillow.crops(content, boxes, height, width, channels)
        share_y = min([box.ymax - box.ymin for box in boxes], default=1.0)
        share_x = min([box.xmax - box.xmin for box in boxes], default=1.0)
        try:
            pixels = self._library.decode_jpeg(
                content,
                colorspace="GRAY" if channels == 1 else "RGB",
                # a box narrower than a pixel wants the whole image, which 2^15 pixels, more than it has, asks for
                min_height=min(math.ceil(height / max(share_y, 1e-9)), 1 << 15),
                min_width=min(math.ceil(width / max(share_x, 1e-9)), 1 << 15),
                min_factor=2,
            )
        except ValueError:  # CMYK, or broken: Pillow decides, and says why
            return self._pillow.crops(content, boxes, height, width, channels)
        if not boxes:
            return [self._resize(pixels, height, width)]
        return [self._resize(part_of(pixels, box), height, width) for box in boxes]


def resized(image: Image.Image, box: Box, height: int, width: int, channels: int) -> Pixels:
    """The part of an image in ``box``, at least a pixel of it, as uint8 ``(height, width, channels)``."""
    if box == WHOLE_IMAGE:
        part = None
    else:
        left, right = _at_least_one(box.xmin * image.width, box.xmax * image.width, image.width)
        upper, lower = _at_least_one(box.ymin * image.height, box.ymax * image.height, image.height)
        part = (left, upper, right, lower)
    if part is not None or image.size != (width, height):
        image = image.resize((width, height), Image.Resampling.BILINEAR, box=part)
    # a copy: what Pillow shares cannot be written to, which torch warns of
    return np.array(image).reshape(height, width, channels)


def part_of(pixels: Pixels, box: Box) -> Pixels:
    """The whole pixels that a box touches, at least one."""
    height, width = pixels.shape[:2]
    left, upper = min(int(box.xmin * width), width - 1), min(int(box.ymin * height), height - 1)
    right, lower = max(math.ceil(box.xmax * width), left + 1), max(math.ceil(box.ymax * height), upper + 1)
    return pixels[upper:lower, left:right]


def _at_least_one(low: float, high: float, end: int) -> tuple[float, float]:
    if high - low >= 1:
        return low, high
    low = min(max(low, 0.0), end - 1.0)
    return low, low + 1
