"""LMDB shards, one file each: keys ``00000000.image`` (JPEG or PNG), ``.label`` (int64 LE) and ``.boxes``
(float32 LE, four a box, where an image has boxes), numbered from 0 in each shard, and ``__len__`` as text.
"""

from __future__ import annotations

import errno
import os
import struct

import lmdb

from harness.datasets.convert.samples import Sample
from harness.datasets.convert.shard import Shard, produced, whole_file
from harness.datasets.parts import Produced

SUFFIX = ".lmdb"
LENGTH_KEY = b"__len__"
_COMMIT_EVERY = 256
_PAGE_BYTES = 4096


def write(shard: Shard) -> list[Produced]:
    """A shard of encoded images."""
    file = shard.stem + SUFFIX
    with whole_file(shard.root, file) as temporary:
        try:
            count = _fill(str(temporary), shard)
        except lmdb.DiskError:  # the binding's word for ENOSPC
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(shard.root / file)) from None
        temporary.with_name(temporary.name + "-lock").unlink(missing_ok=True)
    return [produced(shard.root, file, count)]


def key(number: int, field: str) -> bytes:
    return f"{number:08d}.{field}".encode()


def _fill(path: str, shard: Shard) -> int:
    # a value too large for a page takes whole pages, and each commit copies the pages on its way to the root
    payload = sum(sample.stored_bytes + 8 * _PAGE_BYTES for sample in shard.samples)
    count = 0
    with lmdb.open(path, map_size=2 * payload + (1 << 24), subdir=False, lock=False, sync=False) as environment:
        transaction = environment.begin(write=True)
        for sample, content in shard.encoded():
            _put(transaction, count, sample, content)
            count += 1
            if count % _COMMIT_EVERY == 0:
                transaction.commit()
                transaction = environment.begin(write=True)
        transaction.put(LENGTH_KEY, str(count).encode())
        transaction.commit()
        environment.sync(True)
    return count


def _put(transaction: lmdb.Transaction, number: int, sample: Sample, content: bytes) -> None:
    transaction.put(key(number, "image"), content, append=False)
    transaction.put(key(number, "label"), struct.pack(f"<{len(sample.labels)}q", *sample.labels))
    if boxes := sample.boxes():
        values = [value for box in boxes for value in box]
        transaction.put(key(number, "boxes"), struct.pack(f"<{len(values)}f", *values))
