"""The samples of any data set, as a converter sees them: encoded bytes, pixels, label, boxes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from harness.catalog import DATASETS, load
from harness.datasets import published
from harness.datasets.dataset import Dataset
from harness.datasets.filesets import FileDataset, ImageFiles
from harness.datasets.imagenet import Box, annotation_of, boxes_of
from harness.datasets.manifest import MANIFEST, read_manifest
from harness.errors import UserError

_STREAMS = 16
_PNG_MAGIC = b"\x89PNG"


class CorruptImage(UserError):
    """An image that cannot be read or decoded."""


class Sample(Protocol):
    """One labelled image. ``labels`` holds one class number, or a flag for each finding."""

    @property
    def name(self) -> str:
        """Name of the image without its suffix."""

    @property
    def labels(self) -> tuple[int, ...]: ...

    @property
    def class_folder(self) -> str:
        """Directory of its class; empty where an image may have several labels."""

    @property
    def stored_bytes(self) -> int:
        """Size of the encoded image."""

    def encoded(self) -> bytes:
        """The image file's content, JPEG or PNG."""

    def pixels(self, side: int | None) -> npt.NDArray[np.uint8]:
        """(side, side, 3) uint8, or without ``side`` the image's own (height, width, channels)."""

    def boxes(self) -> list[Box]:
        """Bounding boxes where the data set has them."""


@dataclass(frozen=True)
class FileSample:
    """An image that is a file under ``root``."""

    root: Path
    file: str
    labels: tuple[int, ...]
    class_folder: str
    has_boxes: bool
    stored_bytes: int

    @property
    def name(self) -> str:
        return Path(self.file).stem

    def encoded(self) -> bytes:
        try:
            return (self.root / self.file).read_bytes()
        except OSError as error:
            raise CorruptImage(f"{self.root / self.file}: cannot be read: {error.strerror}") from None

    def pixels(self, side: int | None) -> npt.NDArray[np.uint8]:
        content = self.encoded()
        try:
            image = Image.open(io.BytesIO(content)).convert("RGB")
        except (OSError, SyntaxError, ValueError, UnidentifiedImageError, Image.DecompressionBombError) as error:
            raise CorruptImage(f"{self.root / self.file}: cannot be decoded: {error}") from None
        return np.asarray(image.resize((side, side), Image.Resampling.BILINEAR) if side else image)

    def boxes(self) -> list[Box]:
        if not self.has_boxes or not (self.root / annotation_of(self.file)).exists():
            return []
        return boxes_of(self.root, self.file)


@dataclass(frozen=True)
class ArraySample:
    """An image of a set that is held in memory; its encoded form is a PNG, which loses nothing."""

    name: str
    array: npt.NDArray[np.uint8]
    labels: tuple[int, ...]
    class_folder: str

    @property
    def stored_bytes(self) -> int:
        return self.array.nbytes

    def _image(self) -> Image.Image:
        return Image.fromarray(self.array[..., 0] if self.array.shape[-1] == 1 else self.array)

    def encoded(self) -> bytes:
        stream = io.BytesIO()
        self._image().save(stream, "PNG")
        return stream.getvalue()

    def pixels(self, side: int | None) -> npt.NDArray[np.uint8]:
        if side is None or self.array.shape[:2] == (side, side):
            return self.array
        resized = np.asarray(self._image().resize((side, side), Image.Resampling.BILINEAR))
        return resized.reshape(side, side, self.array.shape[-1])

    def boxes(self) -> list[Box]:
        return []


@dataclass(frozen=True)
class Source:
    """A data set to convert, its samples by split."""

    form: str
    origin: str
    classes: int
    samples: dict[str, list[Sample]]

    @property
    def in_memory(self) -> bool:
        return DATASETS[self.form].in_memory


def open_source(path: Path) -> Source:
    """The data set in directory ``path``, whichever it is.

    Raises:
        UserError: none is there, or it is a converted one.
    """
    form = _format_of(path)
    dataset = load(DATASETS[form].reader)(path)
    if isinstance(dataset, Dataset):
        return Source(form, dataset.origin, DATASETS[form].classes, _array_splits(dataset))
    splits = {"train": _file_samples(dataset, dataset.train), "test": _file_samples(dataset, dataset.test)}
    samples = {split: found for split, found in splits.items() if found}
    return Source(form, dataset.origin, len(dataset.classes), samples)


def extension(content: bytes) -> str:
    """``png`` or ``jpg``, by what the file is and not by its name."""
    return "png" if content.startswith(_PNG_MAGIC) else "jpg"


def _format_of(path: Path) -> str:
    if (path / MANIFEST).exists():
        manifest = read_manifest(path)
        if manifest.conversion is not None:
            raise UserError(f"{path}: is a converted set already; give the one that it was made from")
        return manifest.request.format
    for form in published.LAYOUTS:
        if published.find_layout(path, form):
            return form
    raise UserError(f"{path}: no data set there; see: harness data describe")


def _array_splits(dataset: Dataset) -> dict[str, list[Sample]]:
    pairs = {
        "train": (dataset.train_images, dataset.train_labels),
        "test": (dataset.test_images, dataset.test_labels),
    }
    return {
        split: [
            ArraySample(f"{split}_{i:06d}", image, (int(label),), str(int(label)))
            for i, (image, label) in enumerate(zip(images, labels, strict=True))
        ]
        for split, (images, labels) in pairs.items()
    }


def _file_samples(dataset: FileDataset, split: ImageFiles) -> list[Sample]:
    multi_label = split.labels.ndim == 2
    with ThreadPoolExecutor(_STREAMS) as pool:
        sizes = list(pool.map(lambda file: (split.root / file).stat().st_size, split.files, chunksize=256))
    samples: list[Sample] = []
    for file, label, size in zip(split.files, split.labels.tolist(), sizes, strict=True):
        labels = tuple(label) if multi_label else (label,)
        folder = "" if multi_label else dataset.classes[label]
        samples.append(FileSample(split.root, file, labels, folder, dataset.format == "imagenet", size))
    return samples


def cut_by_size(samples: Sequence[Sample], shard_bytes: int, sample_bytes: int | None) -> list[list[Sample]]:
    """Consecutive samples in shards of about ``shard_bytes``; ``sample_bytes`` where all take the same."""
    shards: list[list[Sample]] = []
    room = 0
    for sample in samples:
        size = sample.stored_bytes if sample_bytes is None else sample_bytes
        if room < size or not shards:
            shards.append([])
            room = max(shard_bytes, size)
        shards[-1].append(sample)
        room -= size
    return shards
