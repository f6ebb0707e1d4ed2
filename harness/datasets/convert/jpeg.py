"""Resized JPEGs in a directory for each class, as torchvision's ImageFolder and Keras' directory reader expect.

Where an image may have several labels they stand in one directory, and ``labels.csv`` has the labels of all.
"""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from harness.datasets.convert.samples import Sample
from harness.datasets.convert.shard import Shard
from harness.datasets.parts import Produced, store

TABLE = "labels.csv"


def write(shard: Shard) -> list[Produced]:
    """The images of a shard, each a file."""
    files = []
    for sample, pixels in shard.decoded():
        image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=shard.quality, subsampling=0)
        files.append(store(shard.root, file_of(shard.split, sample), stream.getvalue())._replace(samples=1))
    return files


def file_of(split: str, sample: Sample) -> str:
    return str(Path(split, sample.class_folder, f"{sample.name}.jpg"))


def table(root: Path, samples: dict[str, list[Sample]], present: set[str]) -> Produced:
    """``file,labels`` of every image that was written; several labels are separated by ``|``."""
    lines = ["file,labels"]
    for split, found in samples.items():
        for sample in found:
            if (file := file_of(split, sample)) in present:
                lines.append(f'"{file}",{"|".join(map(str, sample.labels))}')
    return store(root, TABLE, ("\n".join(lines) + "\n").encode())
