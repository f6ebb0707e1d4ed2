"""Opening converted sets: their facts, their shards, and random access to LMDB and numpy shards."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.datasets.imagenet import Box
from harness.datasets.manifest import LISTING, Manifest, read_listing, read_manifest, remake_hint
from harness.errors import UserError


@dataclass(frozen=True)
class StoredSet:
    """A converted set. ``shape`` is (height, width, channels) where pixels are stored, else None."""

    path: Path
    name: str
    origin: str
    encoding: str
    shape: tuple[int, int, int] | None
    counts: Mapping[str, int]
    shards: Mapping[str, int]

    def files(self, split: str) -> list[Path]:
        """The shards of a split, in order."""
        return [self.path / file for file in sorted(self.shards) if file.startswith(f"{split}-")]

    def samples(self, split: str) -> list[int]:
        """The number of samples in each of :meth:`files`."""
        return [count for file, count in sorted(self.shards.items()) if file.startswith(f"{split}-")]


def open_stored(path: Path, encoding: str) -> StoredSet:
    """The converted set in directory ``path``.

    Raises:
        UserError: none is there, it has another encoding, or a shard is missing or cut short, which some libraries
            answer with a crash of the process.
    """
    manifest = read_manifest(path)
    found = str(manifest.request.options.get("encoding", "native"))
    if found != encoding or manifest.conversion is None:
        raise UserError(f"{path}: is stored as {found}, not {encoding}; convert it: harness data convert --help")
    _check_sizes(path, manifest)
    options = manifest.request.options
    sizes = [int(options[name]) for name in ("height", "width", "channels") if name in options]
    shape = (sizes[0], sizes[1], sizes[2]) if sizes else None
    request, shards = manifest.request, manifest.conversion.shards
    return StoredSet(path, request.name, request.origin, found, shape, request.counts, shards)


def _check_sizes(path: Path, manifest: Manifest) -> None:
    for listed in read_listing(path) if LISTING in manifest.files else ():
        try:
            size = (path / listed.file).stat().st_size
        except OSError as error:
            raise UserError(
                f"{path / listed.file}: cannot be read: {error.strerror}; {remake_hint(path, manifest)}"
            ) from None
        if size != listed.bytes:
            raise UserError(
                f"{path / listed.file}: {size} bytes where {LISTING} says {listed.bytes}; {remake_hint(path, manifest)}"
            )


#: path → open environment. LMDB refuses to open a file twice in a process, and a forked worker counts as having open
#: what its parent had; read-only and without locks, the inherited one serves it as well.
_ENVIRONMENTS: dict[str, Any] = {}
_OPENING = threading.Lock()


class LmdbImages:
    """Encoded images of LMDB shards by number.

    Several threads may read at once; may be copied into worker processes, forked or spawned.
    """

    def __init__(self, stored: StoredSet, split: str):
        self._files = [str(file) for file in stored.files(split)]
        self._ends = list(accumulate(stored.samples(split)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: int) -> tuple[bytes, npt.NDArray[np.int64]]:
        """(JPEG or PNG file, labels)."""
        image, label = self._values(index, "image", "label")
        return image, np.frombuffer(label, "<i8")

    def boxes(self, index: int) -> tuple[Box, ...]:
        """The boxes of an image's annotation; none where it has none."""
        [values] = self._values(index, "boxes")
        return tuple(Box(*box) for box in np.frombuffer(values or b"", "<f4").reshape(-1, 4).tolist())

    def _values(self, index: int, *fields: str) -> list[Any]:
        if not 0 <= index < len(self):
            raise IndexError(index)
        shard = bisect.bisect_right(self._ends, index)
        number = index - (self._ends[shard - 1] if shard else 0)
        with _environment(self._files[shard]).begin() as transaction:
            return [transaction.get(f"{number:08d}.{field}".encode()) for field in fields]

    def close(self) -> None:
        """Close the shards in this process; a later access opens them again."""
        for file in self._files:
            if file in _ENVIRONMENTS:
                _ENVIRONMENTS.pop(file).close()


def _environment(file: str) -> Any:
    found = _ENVIRONMENTS.get(file)
    if found is not None:
        return found
    import lmdb

    with _OPENING:  # loader threads come to a shard at the same time
        if file not in _ENVIRONMENTS:
            # reads are random, so reading ahead would fetch far more than one image
            _ENVIRONMENTS[file] = lmdb.open(file, subdir=False, readonly=True, lock=False, readahead=False)
        return _ENVIRONMENTS[file]


def mapped_arrays(stored: StoredSet, split: str) -> list[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]]:
    """(images, labels) of each numpy shard, the images memory-mapped."""
    return [
        (
            np.load(file, mmap_mode="r", allow_pickle=False),
            np.load(file.with_name(file.name.replace(".images.", ".labels.")), allow_pickle=False),
        )
        for file in stored.files(split)
    ]
