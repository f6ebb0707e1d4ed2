"""A shard to be written, and what all encodings share in writing it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.datasets.convert.samples import CorruptImage, Sample
from harness.datasets.parts import Produced

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Shard:
    """Samples to be written under ``root`` into files whose names begin with ``stem``.

    ``side``: pixels are resized to a square of that edge; None keeps the images' own size. ``skip_corrupt``: images
    that cannot be decoded are left out instead of ending the conversion.
    """

    root: Path
    split: str
    stem: str
    samples: tuple[Sample, ...]
    side: int | None
    quality: int
    skip_corrupt: bool

    def encoded(self) -> Iterator[tuple[Sample, bytes]]:
        """Each sample with its encoded image."""
        for sample in self.samples:
            try:
                content = sample.encoded()
            except CorruptImage:
                if not self.skip_corrupt:
                    raise
                continue
            yield sample, content

    def decoded(self) -> Iterator[tuple[Sample, npt.NDArray[np.uint8]]]:
        """Each sample with its pixels."""
        for sample in self.samples:
            try:
                pixels = sample.pixels(self.side)
            except CorruptImage:
                if not self.skip_corrupt:
                    raise
                continue
            yield sample, pixels


@contextmanager
def whole_file(root: Path, file: str) -> Iterator[Path]:
    """A temporary path to write to; it becomes ``file`` when the block ends well, and vanishes otherwise."""
    target = root / file
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.part")
    temporary.unlink(missing_ok=True)
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def produced(root: Path, file: str, samples: int) -> Produced:
    """The facts of a file that was just written (and so is read from the page cache)."""
    md5, size = hashlib.md5(usedforsecurity=False), 0
    with (root / file).open("rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            md5.update(block)
            size += len(block)
    return Produced(file, size, md5.hexdigest(), samples)
