"""The encoded training images of a point, by number: files of a tree, or LMDB shards. No framework is imported here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.catalog import DATASETS, lookup, split_dataset
from harness.datasets.filesets import ImageFiles
from harness.datasets.imagenet import Box, boxes_of
from harness.datasets.stored import LmdbImages, open_stored
from harness.errors import UserError
from harness.pipelines.corrupt import Lost
from harness.pipelines.interface import batch_form
from harness.pipelines.trees import image_tree
from harness.runtime.interfaces import RunContext


class Encoded(NamedTuple):
    """A JPEG or PNG file's content; ``label`` is a class number or flags; no ``boxes`` stands for the whole image."""

    name: str
    content: bytes
    label: Any
    boxes: tuple[Box, ...] = ()


class Unreadable(Exception):
    """An image whose bytes or annotation cannot be had."""

    def __init__(self, file: str, reason: str):
        super().__init__(f"{file}: {reason}")
        self.lost = Lost(file, reason)


class Library(Protocol):
    """Encoded images by number; may be handed to worker processes, and read by several threads at once."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Encoded:
        """Image ``index``.

        Raises:
            Unreadable: it cannot be read.
        """


class Tree:
    """Images that are files. ``with_boxes`` reads the ImageNet annotation of each as well."""

    def __init__(self, files: ImageFiles, with_boxes: bool = False):
        self._files = files
        self._root = str(files.root)
        self._with_boxes = with_boxes

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> Encoded:
        file = self._files.files[index]
        path = f"{self._root}/{file}"
        try:
            content = _whole(path)
            boxes = tuple(boxes_of(self._files.root, file)) if self._with_boxes else ()
        except OSError as error:
            raise Unreadable(path, f"cannot be read: {error.strerror}") from None
        except UserError as error:
            raise Unreadable(path, str(error)) from None
        return Encoded(path, content, self._files.labels[index], boxes)


def _whole(path: str) -> bytes:
    """A file's content by the fewest calls; a ``Path`` takes half as much time again, most of it with the lock held."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        content = os.read(descriptor, size)
        while len(content) < size and (more := os.read(descriptor, size - len(content))):
            content += more
        return content
    finally:
        os.close(descriptor)


class Lmdb:
    """Images of an LMDB conversion. ``with_boxes`` reads the boxes of each as well."""

    def __init__(self, path: Path, multi_label: bool, with_boxes: bool = False):
        self._path = path
        self._images = LmdbImages(open_stored(path, "lmdb"), "train")
        self._multi_label = multi_label
        self._with_boxes = with_boxes

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> Encoded:
        name = f"{self._path}: image {index} of train"
        try:
            content, labels = self._images[index]
            boxes = self._images.boxes(index) if self._with_boxes else ()
        except Exception as error:  # lmdb's own kinds of error, which are not worth importing it for
            raise Unreadable(name, f"cannot be read: {error}") from None
        return Encoded(name, content, labels if self._multi_label else labels[0], boxes)


def open_library(context: RunContext) -> Library:
    """The point's training images, wherever its encoding keeps them.

    Raises:
        UserError: they are not there, or are fewer than the ranks.
    """
    axes = context.axes
    found: Library
    boxes = with_boxes(context)
    if axes.encoding == "lmdb":
        found = Lmdb(data_directory(context), batch_form(axes).multi_label, boxes)
    else:
        found = Tree(image_tree(context), boxes)
    if len(found) < context.ranks.world:
        raise UserError(f"{context.data_path}: {len(found)} images cannot be shared by {context.ranks.world} ranks")
    return found


def data_directory(context: RunContext) -> Path:
    """Where the data set lies.

    Raises:
        UserError: the point has none.
    """
    if context.data_path is None:
        raise UserError(
            f"workload {context.axes.workload} has no data set, so pipeline {context.axes.pipeline} has none"
        )
    return context.data_path


def with_boxes(context: RunContext) -> bool:
    """Whether the point wants a crop for each box.

    Raises:
        UserError: it does, and its data have no boxes that are read.
    """
    axes = context.axes
    if not axes.options.get("box_crops"):
        return False
    _, form = split_dataset(axes.dataset)
    if lookup(DATASETS, form, "data set").name != "imagenet" or axes.encoding not in ("native", "lmdb"):
        raise UserError(f"box_crops: {axes.dataset} as {axes.encoding} has no boxes; imagenet as native or lmdb has")
    return True


def as_labels(labels: NDArray[Any], multi_label: bool) -> NDArray[Any]:
    """Labels as the batch contract has them: int64 ``(b,)``, or float32 ``(b, classes)``."""
    return labels.astype(np.float32 if multi_label else np.int64)
