"""An image set kept as files: which files, with which labels; pixels are read by whoever needs them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.datasets.manifest import origin_of
from harness.datasets.published import COUNTS


@dataclass(frozen=True)
class ImageFiles:
    """The files of one split, relative to ``root``.

    ``labels`` are class numbers (n,) int64, or flags (n, findings) uint8 where an image may have several.
    """

    root: Path
    files: tuple[str, ...]
    labels: npt.NDArray[np.integer]

    def __len__(self) -> int:
        return len(self.files)


@dataclass(frozen=True)
class FileDataset:
    """A whole set. ``origin`` is what its manifest says.

    Such trees have no published checksums: without a manifest one with exactly the published numbers of images is
    taken for ``real``, any other is ``unknown``. ``skipped``: files that stand among the images and are none.
    """

    name: str
    format: str
    origin: str
    classes: tuple[str, ...]
    train: ImageFiles
    test: ImageFiles
    skipped: tuple[str, ...]


def assemble(
    path: Path, form: str, classes: tuple[str, ...], train: ImageFiles, test: ImageFiles, skipped: tuple[str, ...]
) -> FileDataset:
    """A :class:`FileDataset` named as sweeps name it."""
    origin = origin_of(path)
    counts = {"train": len(train), "test": len(test)}
    if origin == "unknown" and {split: n for split, n in counts.items() if n} == COUNTS[form]:
        origin = "real"
    name = form if origin == "real" else f"{origin}:{form}"
    return FileDataset(name, form, origin, classes, train, test, skipped)


def scan_classes(
    root: Path, folder: str, classes: Iterable[str], suffixes: tuple[str, ...]
) -> tuple[tuple[str, ...], npt.NDArray[np.int64], tuple[str, ...]]:
    """Files and labels of ``folder/<class>/``, and what else stands there.

    A label is a class's place in ``classes``; files are sorted, because the order of a directory is accidental.
    """
    files: list[str] = []
    labels: list[int] = []
    skipped: list[str] = []
    for label, name in enumerate(classes):
        images: list[str] = []
        for entry in os.scandir(root / folder / name):
            is_image = entry.name.lower().endswith(suffixes) and not entry.name.startswith(".")
            (images if is_image else skipped).append(f"{folder}/{name}/{entry.name}")
        files += sorted(images)
        labels += [label] * len(images)
    return tuple(files), np.array(labels, np.int64), tuple(sorted(skipped))


def class_folders(folder: Path) -> tuple[str, ...]:
    """The sub-directories of ``folder``, sorted."""
    return tuple(sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and entry.name[0] != "."))
