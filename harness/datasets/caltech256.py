"""Caltech-256: ``256_ObjectCategories/NNN.name/NNN_KKKK.jpg``, with a few strays that are no images."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.datasets.filesets import FileDataset, ImageFiles, assemble, class_folders, scan_classes
from harness.errors import UserError

FORMAT = "caltech256"
FOLDER = "256_ObjectCategories"


def read(path: Path) -> FileDataset:
    """The tree in directory ``path``; all images are training images, the set has no split of its own.

    Raises:
        UserError: nothing there.
    """
    if not (path / FOLDER).is_dir():
        raise UserError(f"{path}: no Caltech-256 there ({FOLDER} is missing); see: harness data describe caltech256")
    classes = class_folders(path / FOLDER)
    files, labels, skipped = scan_classes(path, FOLDER, classes, (".jpg",))
    if not files:
        raise UserError(f"{path / FOLDER}: holds no .jpg file; see: harness data describe caltech256")
    none = ImageFiles(path, (), np.empty(0, np.int64))
    return assemble(path, FORMAT, classes, ImageFiles(path, files, labels), none, skipped)
