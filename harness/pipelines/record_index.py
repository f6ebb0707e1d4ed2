"""Random access to the records of TFRecord files, by their framing; no framework is imported here.

Format: TensorFlow's guide "TFRecord and tf.train.Example": length as uint64 LE, 4 bytes of its checksum, data, 4 bytes
of their checksum. Checksums are left to readers that decode; a frame that leads beyond the file's end is an error.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from harness.errors import UserError

_HEAD_BYTES = 12
_TAIL_BYTES = 4


class Records:
    """The records of some files, numbered through; safe to read from several threads at once."""

    def __init__(self, files: list[Path]):
        self._handles: list[int] = []
        self._places: list[tuple[int, int, int]] = []
        for file in files:
            self._handles.append(os.open(file, os.O_RDONLY))
            self._places += [(self._handles[-1], *place) for place in _places(file)]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: int) -> bytes:
        handle, offset, length = self._places[number]
        return os.pread(handle, length, offset)

    def close(self) -> None:
        """No record can be read afterwards."""
        for handle in self._handles:
            os.close(handle)
        self._handles, self._places = [], []


def _places(file: Path) -> list[tuple[int, int]]:
    """(offset, length) of the data of each record."""
    found: list[tuple[int, int]] = []
    offset, size = 0, file.stat().st_size
    with file.open("rb", buffering=0) as stream:
        while offset < size:
            stream.seek(offset)
            head = stream.read(_HEAD_BYTES)
            length = struct.unpack("<Q", head[:8])[0] if len(head) == _HEAD_BYTES else size
            end = offset + _HEAD_BYTES + length + _TAIL_BYTES
            if end > size:
                raise UserError(f"{file}: torn after {len(found)} records; convert the data set again")
            found.append((offset + _HEAD_BYTES, length))
            offset = end
    return found
