"""TFRecord shards of tf.train.Example messages, with encoded images or with pixels.

Framing (TensorFlow's "TFRecord and tf.train.Example" guide): length as uint64 LE, masked CRC32C of these 8 bytes,
data, masked CRC32C of the data. Features: ``image/encoded`` or ``image/raw`` with ``image/height``, ``width``,
``channels``; ``image/format``; ``image/filename``; ``image/class/label`` (one class number from 0, or a flag for each
finding); ``image/object/bbox/{xmin,ymin,xmax,ymax}`` as parts of the image where it has boxes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import crc32c

from harness.datasets.convert.example import Feature, example
from harness.datasets.convert.samples import Sample, extension
from harness.datasets.convert.shard import Shard, produced, whole_file
from harness.datasets.imagenet import Box
from harness.datasets.parts import Produced

SUFFIX = ".tfrecord"


def write_encoded(shard: Shard) -> list[Produced]:
    """A shard of encoded images."""
    return _write(shard, (_encoded_features(sample, content) for sample, content in shard.encoded()))


def write_decoded(shard: Shard) -> list[Produced]:
    """A shard of pixels."""
    return _write(shard, ({"image/raw": p.tobytes()} | _common(s, p.shape) for s, p in shard.decoded()))


def frame(data: bytes) -> bytes:
    """One record."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", _masked(length)) + data + struct.pack("<I", _masked(data))


def _masked(data: bytes) -> int:
    """CRC32C rotated right by 15 bits plus a constant, so that a record may itself hold records."""
    crc = crc32c.crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _write(shard: Shard, records: Iterator[dict[str, Feature]]) -> list[Produced]:
    file, count = shard.stem + SUFFIX, 0
    with whole_file(shard.root, file) as temporary, temporary.open("wb") as stream:
        for features in records:
            stream.write(frame(example(features)))
            count += 1
    return [produced(shard.root, file, count)]


def _encoded_features(sample: Sample, content: bytes) -> dict[str, Feature]:
    kind = b"png" if extension(content) == "png" else b"jpeg"
    return {"image/encoded": content, "image/format": kind} | _common(sample, None)


def _common(sample: Sample, shape: tuple[int, ...] | None) -> dict[str, Feature]:
    features: dict[str, Feature] = {
        "image/filename": sample.name.encode(),
        "image/class/label": list(sample.labels),
    }
    if shape:
        features |= {f"image/{name}": [size] for name, size in zip(("height", "width", "channels"), shape, strict=True)}
    boxes = sample.boxes()
    for place, field in enumerate(Box._fields if boxes else ()):
        features[f"image/object/bbox/{field}"] = [float(box[place]) for box in boxes]
    return features
