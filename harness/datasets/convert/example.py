"""tf.train.Example messages in protocol-buffer wire format, so that making TFRecords needs no TensorFlow.

Format: tensorflow/core/example/{example,feature}.proto. Example{1: Features}, Features{1: map<string, Feature>},
Feature{1: BytesList | 2: FloatList | 3: Int64List}, each list {1: repeated value}, numbers packed.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

Feature = bytes | list[int] | list[float]


def example(features: Mapping[str, Feature]) -> bytes:
    """A serialised Example; a list of floats is a FloatList, of ints an Int64List, bytes are a BytesList of one."""
    entries = b"".join(
        _field(1, _field(1, name.encode()) + _field(2, _feature(value))) for name, value in sorted(features.items())
    )
    return _field(1, entries)


def _feature(value: Feature) -> bytes:
    if isinstance(value, bytes):
        return _field(1, _field(1, value))
    if value and isinstance(value[0], float):
        return _field(2, _field(1, struct.pack(f"<{len(value)}f", *value)))
    return _field(3, _field(1, b"".join(_varint(int(item)) for item in value)))


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field (wire type 2)."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits a byte, least first; negative int64 as their two's complement, ten bytes."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
