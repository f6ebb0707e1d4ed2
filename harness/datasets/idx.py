"""The IDX format: big-endian magic (type 8 = uint8, number of dimensions), the sizes, then the bytes.

Format: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits".
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib

import numpy as np
import numpy.typing as npt

from harness.errors import UserError

_UINT8 = 0x08
_GZIP_MAGIC = b"\x1f\x8b"


def encode(array: npt.NDArray[np.uint8]) -> bytes:
    """``array`` as IDX, gzipped without time or name, so that equal arrays give equal files."""
    header = struct.pack(f">HBB{array.ndim}I", 0, _UINT8, array.ndim, *array.shape)
    return gzip.compress(header + array.tobytes(), compresslevel=6, mtime=0)


def decode(content: bytes, dimensions: int, file: str) -> npt.NDArray[np.uint8]:
    """The uint8 array of an IDX file's ``content`` (gzipped or not) with that many dimensions.

    Raises:
        UserError: naming ``file``, where the content is no such array or is cut short.
    """
    if content[:2] == _GZIP_MAGIC:
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise UserError(f"{file}: damaged or cut short (gzip: {error}); make or fetch the set again") from None
    header_bytes = 4 + 4 * dimensions
    magic = struct.pack(">HBB", 0, _UINT8, dimensions)
    if len(content) < header_bytes or content[:4] != magic:
        found = content[:4].hex() or "nothing"
        raise UserError(f"{file}: no IDX file of {dimensions} dimensions (starts with {found}, not {magic.hex()})")
    shape = struct.unpack_from(f">{dimensions}I", content, 4)
    if len(content) != header_bytes + math.prod(shape):
        raise UserError(
            f"{file}: {len(content) - header_bytes} bytes of data where its header says "
            f"{math.prod(shape)}; make or fetch the set again"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header_bytes).reshape(shape)
