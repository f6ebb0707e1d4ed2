"""Decoding, cropping and augmenting images in TensorFlow's graph, outside Python's lock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from harness.datasets.imagenet import boxes_of
from harness.pipelines.interface import BatchForm

#: rows and columns that a random crop leaves, as a part of the image's
CROP_SHARE = 7 / 8
WHOLE = ((0.0, 0.0, 1.0, 1.0),)


def decode(content: Any, channels: int) -> Any:
    """A JPEG or PNG, told by its content, as uint8 ``(h, w, channels)``; grey and CMYK become what is asked for."""
    image = tf.io.decode_image(content, channels=channels, expand_animations=False)
    return tf.ensure_shape(image, (None, None, channels))


def crops(image: Any, boxes: Any, form: BatchForm) -> Any:
    """One crop for each box ``(k, 4)`` of (ymin, xmin, ymax, xmax) from 0 to 1, resized: uint8 ``(k, h, w, c)``."""
    cut = tf.image.crop_and_resize(
        image[None], boxes, tf.zeros([tf.shape(boxes)[0]], tf.int32), (form.height, form.width)
    )
    return tf.cast(tf.round(cut), tf.uint8)


def boxes_in_graph(text: Any) -> Any:
    """The boxes of an annotation's XML ``text``, float32 ``(k, 4)``, the whole image where there is none.

    The same as :func:`harness.datasets.imagenet.boxes_of` by string operations: an XML parser in Python holds the lock
    that all of tf.data's threads would wait for.
    """
    width, height = (tf.maximum(_number(text, side) - 1, 1) for side in ("width", "height"))
    found = tf.strings.split(text, "<bndbox>")[1:]
    y1, x1, y2, x2 = (_number(found, name) for name in ("ymin", "xmin", "ymax", "xmax"))
    low, high = tf.stack([y1 / height, x1 / width], 1), tf.stack([y2 / height, x2 / width], 1)
    low, high = tf.clip_by_value(low, 0, 1), tf.clip_by_value(high, 0, 1)
    boxes = tf.concat([tf.minimum(low, high), tf.maximum(low, high)], 1)
    return tf.cond(tf.shape(boxes)[0] > 0, lambda: boxes, lambda: tf.constant(WHOLE))


def _number(text: Any, tag: str) -> Any:
    pattern = rf"(?s)^.*?<{tag}>\s*([-0-9.]+)\s*</{tag}>.*$"
    return tf.strings.to_number(tf.strings.regex_replace(text, pattern, r"\1", replace_global=False))


def boxes_in_python(root: Path) -> Callable[[Any], Any]:
    """A function from an image's path relative to ``root`` to its boxes, parsed in Python under its lock."""

    def parse(file: bytes) -> Any:
        boxes = boxes_of(root, file.decode())
        return np.array([(box.ymin, box.xmin, box.ymax, box.xmax) for box in boxes], np.float32)

    def boxes(file: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(parse, [file], tf.float32), (None, 4))

    return boxes


def random_view(images: Any) -> Any:
    """Each of uint8 ``(k, h, w, c)`` cropped to 7/8 of its sides somewhere, resized back, half of them mirrored.

    Which crop an image gets depends on the order in which parallel calls draw, so it differs from run to run.
    """
    count = tf.shape(images)[0]
    shape = images.shape[1:]
    corner = tf.random.uniform((count, 2), 0, 1 - CROP_SHARE)
    boxes = tf.concat([corner, corner + CROP_SHARE], 1)
    mirrored = tf.random.uniform((count, 1)) < 0.5
    y1, x1, y2, x2 = tf.split(boxes, 4, 1)
    boxes = tf.where(mirrored, tf.concat([y1, x2, y2, x1], 1), boxes)
    views = tf.image.crop_and_resize(images, boxes, tf.range(count), shape[:2])
    return tf.cast(tf.round(views), tf.uint8)
