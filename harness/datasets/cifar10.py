"""CIFAR-10: reading and writing its python batches (pickles) and its binary batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.datasets import pickles, published
from harness.datasets.contents import check_labels, locate, read_all
from harness.datasets.dataset import Dataset, Split, assemble
from harness.datasets.manifest import provenance
from harness.errors import UserError
from harness.files import write_atomically

FORMAT = "cifar10"
CLASSES = 10
SIDE = 32
IMAGE_BYTES = 3 * SIDE * SIDE
RECORD_BYTES = 1 + IMAGE_BYTES


def read(path: Path) -> Dataset:
    """The CIFAR-10 set in directory ``path``: images (n, 32, 32, 3) uint8, labels (n,) uint8.

    Raises:
        UserError: nothing there, or a file is damaged; the message names the file.
    """
    names = locate(path, FORMAT)
    contents, digests = read_all(path, names)
    origin, verified = provenance(path, digests)
    batches = [_decode(contents[name], str(path / name)) for name in names]
    return assemble(FORMAT, origin, verified, _join(batches[:-1]), batches[-1])


def write(path: Path, train: Split, test: Split, layout: str, label_names: tuple[str, ...]) -> list[str]:
    """Write the set into ``path`` in ``layout`` python or binary; returns the files' names.

    The training images are divided over the five batches as evenly as possible.
    """
    chunks = np.array_split(np.arange(len(train.labels)), len(published.CIFAR_TRAIN_BATCHES))
    splits = [Split(train.images[chunk], train.labels[chunk]) for chunk in chunks]
    batches = dict(zip(published.CIFAR_TRAIN_BATCHES, splits, strict=True))
    batches[published.CIFAR_TEST_BATCH] = test
    writer = _write_python if layout == "python" else _write_binary
    return writer(path, batches, label_names)


def _decode(content: bytes, file: str) -> Split:
    return _from_binary(content, file) if file.endswith(".bin") else _from_python(content, file)


def _from_python(content: bytes, file: str) -> Split:
    batch = pickles.load(content, file)
    data, labels = batch.get(b"data"), batch.get(b"labels")
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (IMAGE_BYTES,):
        raise UserError(f"{file}: no CIFAR-10 batch: its data are no uint8 array of {IMAGE_BYTES} columns")
    if not isinstance(labels, list) or not all(type(label) is int and 0 <= label < 256 for label in labels):
        raise UserError(f"{file}: no CIFAR-10 batch: its labels are no list of class numbers")
    return _checked(data, np.array(labels, np.uint8), file)


def _from_binary(content: bytes, file: str) -> Split:
    if not content or len(content) % RECORD_BYTES:
        raise UserError(
            f"{file}: {len(content)} bytes, no whole number of {RECORD_BYTES}-byte records; make or fetch the set again"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, RECORD_BYTES)
    return _checked(records[:, 1:], records[:, 0], file)


def _checked(planar: npt.NDArray[np.uint8], labels: npt.NDArray[np.uint8], file: str) -> Split:
    check_labels(len(labels), len(planar), int(labels.max(initial=0)), CLASSES, file)
    images = planar.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return Split(np.ascontiguousarray(images), np.ascontiguousarray(labels))


def _join(splits: list[Split]) -> Split:
    return Split(np.concatenate([s.images for s in splits]), np.concatenate([s.labels for s in splits]))


def _planar(split: Split) -> npt.NDArray[np.uint8]:
    """(n, 3072): each row the red plane, then green, then blue, each row by row."""
    return np.ascontiguousarray(split.images.transpose(0, 3, 1, 2)).reshape(len(split.images), IMAGE_BYTES)


def _write_python(path: Path, batches: dict[str, Split], label_names: tuple[str, ...]) -> list[str]:
    names = []
    for number, (name, split) in enumerate(batches.items(), 1):
        is_test = name == published.CIFAR_TEST_BATCH
        title = b"testing batch 1 of 1" if is_test else f"training batch {number} of {len(batches) - 1}".encode()
        filenames = [f"{label_names[label]}_{i:06d}.png".encode() for i, label in enumerate(split.labels)]
        batch: dict[bytes, Any] = {
            b"batch_label": title,
            b"labels": split.labels.tolist(),
            b"data": _planar(split),
            b"filenames": filenames,
        }
        names.append(f"{published.CIFAR_PYTHON}/{name}")
        write_atomically(path / names[-1], pickles.dump(batch))
    largest = max(len(split.labels) for split in batches.values())
    meta = {
        b"num_cases_per_batch": largest,
        b"label_names": [name.encode() for name in label_names],
        b"num_vis": IMAGE_BYTES,
    }
    names.append(f"{published.CIFAR_PYTHON}/batches.meta")
    write_atomically(path / names[-1], pickles.dump(meta))
    return names


def _write_binary(path: Path, batches: dict[str, Split], label_names: tuple[str, ...]) -> list[str]:
    names = []
    for name, split in batches.items():
        records = np.concatenate([split.labels[:, np.newaxis], _planar(split)], axis=1)
        names.append(f"{published.CIFAR_BINARY}/{name}.bin")
        write_atomically(path / names[-1], records.tobytes())
    names.append(f"{published.CIFAR_BINARY}/batches.meta.txt")
    write_atomically(path / names[-1], "\n".join(label_names) + "\n")
    return names
