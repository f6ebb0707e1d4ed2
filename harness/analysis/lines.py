"""JSON lines, read fast: the same records as :func:`harness.files.read_json_lines`, in a fraction of its time.

A line is parsed by orjson and its seal checked; whatever is not as it should be goes to
:func:`harness.files.parse_line`, whose word is the last one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import orjson

from harness.files import SEAL_LENGTH, parse_line

#: A file is read in blocks of at most this many bytes, so that memory does not grow with it.
BLOCK_BYTES = 1 << 22

PathText = str | os.PathLike[str]


def line_blocks(path: PathText) -> Iterator[list[bytes]]:
    """The file's lines without their newlines, some thousands at a time; nothing for a file that does not exist.

    Raises:
        OSError: where the file cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        size, rest = min(os.fstat(handle).st_size + 1, BLOCK_BYTES), b""
        while data := os.read(handle, size):
            lines = (rest + data if rest else data).split(b"\n")
            rest = lines.pop()
            yield lines
        if rest:
            yield [rest]
    finally:
        os.close(handle)


def whole_file(path: PathText) -> bytes:
    """Raises:
    OSError: where the file cannot be read.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        data = os.read(handle, BLOCK_BYTES)
        while more := os.read(handle, BLOCK_BYTES):
            data += more
        return data
    finally:
        os.close(handle)


def record_of(line: bytes) -> dict[str, Any] | None:
    """The record of a line, without its seal; None where it is no JSON object or its seal is broken."""
    try:
        record = orjson.loads(line)
    except ValueError:
        return parse_line(line)
    if type(record) is not dict:
        return None
    seal = record.pop("crc", None)
    if seal is None or seal == f"{crc32(line[:-SEAL_LENGTH]):08x}":
        return record
    return parse_line(line)


def records(path: PathText) -> Iterator[dict[str, Any]]:
    """As :func:`harness.files.read_json_lines`."""
    for lines in line_blocks(path):
        for line in lines:
            if (record := record_of(line)) is not None:
                yield record
