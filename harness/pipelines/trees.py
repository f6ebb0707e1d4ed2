"""The training images of a point whose samples are files, as published or resized; no framework is imported here."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from harness.catalog import DATASETS, load, lookup, split_dataset
from harness.datasets.filesets import FileDataset, ImageFiles
from harness.datasets.manifest import MANIFEST
from harness.errors import UserError
from harness.pipelines.vouched import check_origin
from harness.runtime.interfaces import RunContext

TABLE = "labels.csv"


def image_tree(context: RunContext) -> ImageFiles:
    """Files, relative to their root, and labels of the training split.

    Raises:
        UserError: the data are of another form, or not there.
    """
    if context.data_path is None:
        raise UserError(f"workload {context.axes.workload} has no data set, so there are no files to read")
    encoding = context.axes.encoding
    if encoding == "jpeg":
        return _resized(context.data_path)
    _, form = split_dataset(context.axes.dataset)
    dataset = load(lookup(DATASETS, form, "data set").reader)(context.data_path) if encoding == "native" else None
    if not isinstance(dataset, FileDataset):
        raise UserError(
            f"pipeline {context.axes.pipeline} reads trees of image files (encoding native or jpeg); "
            f"{context.axes.dataset} as {encoding} is none"
        )
    if not (context.data_path / MANIFEST).exists():
        _note_data(context, dataset)
    check_origin(context, dataset.name, dataset.origin)
    return dataset.train


def _note_data(context: RunContext, dataset: FileDataset) -> None:
    """A ``data`` event of a tree without a manifest. Sizes are not asked for: there may be a million."""
    unknown = dict.fromkeys(("bytes", "digest", "verified"))
    path, samples = str(context.data_path), len(dataset.train)
    context.note("data", dataset=dataset.name, origin=dataset.origin, path=path, samples=samples, **unknown)


def _resized(root: Path) -> ImageFiles:
    """The tree that ``harness data convert --encoding jpeg`` writes, by its table of labels."""
    try:
        with (root / TABLE).open(newline="", encoding="utf-8") as stream:
            rows = [row for row in csv.DictReader(stream) if row["file"].startswith("train/")]
    except FileNotFoundError:
        raise UserError(f"{root}: no resized images there ({TABLE} is missing); see: harness data convert") from None
    labels = [[int(word) for word in row["labels"].split("|")] for row in rows]
    single = all(len(words) == 1 for words in labels)
    numbers = np.array([words[0] for words in labels], np.int64) if single else np.array(labels, np.uint8)
    return ImageFiles(root, tuple(row["file"] for row in rows), numbers)
