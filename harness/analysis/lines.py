"""JSON lines, read fast: the same records as :func:`harness.files.read_json_lines`, in a fraction of its time.

A line is parsed by orjson and its seal checked; whatever is not as it should be goes to
:func:`harness.files.parse_line`, whose word is the last one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any
from zlib import crc32

import orjson

from harness.files import SEAL_LENGTH, open_file, parse_line

#: A file is read in blocks of at most this many bytes, so that memory does not grow with it.
BLOCK_BYTES = 1 << 22

PathText = str | os.PathLike[str]


def line_blocks(path: PathText) -> Iterator[list[bytes]]:
    """The file's lines without their newlines, some thousands at a time; nothing for a file that does not exist.

    Raises:
        OSError: where the file cannot be read.
    """
    try:
        handle = open_file(path)
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
    handle = open_file(path)
    try:
        data = os.read(handle, BLOCK_BYTES)
        while more := os.read(handle, BLOCK_BYTES):
            data += more
        return data
    finally:
        os.close(handle)


def records_of(lines: Iterable[bytes]) -> Iterator[dict[str, Any] | None]:
    """The record of each line, without its seal; None where it is no JSON object or its seal is broken."""
    for line in lines:
        try:
            record = orjson.loads(line)
        except ValueError:
            yield parse_line(line)
            continue
        if type(record) is not dict:
            yield None
            continue
        seal = record.pop("crc", None)
        # eight hexadecimal digits, in two thirds of the time that a format takes
        whole = seal is None or seal == crc32(line[:-SEAL_LENGTH]).to_bytes(4, "big").hex()
        yield record if whole else parse_line(line)


def records(path: PathText) -> Iterator[dict[str, Any]]:
    """As :func:`harness.files.read_json_lines`."""
    for lines in line_blocks(path):
        for record in records_of(lines):
            if record is not None:
                yield record
