"""MNIST: reading and writing its four gzip IDX files; Keras' ``mnist.npz`` is read too."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from harness.datasets import idx, published
from harness.datasets.contents import check_labels, locate, read_all
from harness.datasets.dataset import Dataset, Split, assemble
from harness.datasets.manifest import provenance
from harness.errors import UserError
from harness.files import write_atomically

FORMAT = "mnist"
CLASSES = 10


def read(path: Path) -> Dataset:
    """The MNIST set in directory ``path``: images (n, 28, 28, 1) uint8, labels (n,) uint8.

    Raises:
        UserError: nothing there, or a file is damaged; the message names the file.
    """
    names = locate(path, FORMAT)
    contents, digests = read_all(path, names)
    origin, verified = provenance(path, digests)
    if len(names) == 1:
        train, test = _from_npz(contents[names[0]], str(path / names[0]))
    else:
        train, test = (_from_idx(path, contents, names[i], names[i + 1]) for i in (0, 2))
    return assemble(FORMAT, origin, verified, train, test)


def write(path: Path, train: Split, test: Split) -> list[str]:
    """Write the four files into ``path``; returns their names."""
    arrays = (train.images[..., 0], train.labels, test.images[..., 0], test.labels)
    for name, array in zip(published.MNIST_FILES, arrays, strict=True):
        write_atomically(path / name, idx.encode(np.ascontiguousarray(array)))
    return list(published.MNIST_FILES)


def _from_idx(path: Path, contents: dict[str, bytes], images_name: str, labels_name: str) -> Split:
    images = idx.decode(contents[images_name], 3, str(path / images_name))
    labels = idx.decode(contents[labels_name], 1, str(path / labels_name))
    return _checked(images, labels, str(path / labels_name))


def _from_npz(content: bytes, file: str) -> tuple[Split, Split]:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            train = _checked(arrays["x_train"], arrays["y_train"], file)
            test = _checked(arrays["x_test"], arrays["y_test"], file)
    except UserError:
        raise
    except Exception as error:  # a damaged zip raises nearly anything: BadZipFile, NotImplementedError, zlib.error …
        raise UserError(f"{file}: damaged, or not Keras' mnist.npz ({error}); fetch it again") from None
    return train, test


def _checked(images: np.ndarray, labels: np.ndarray, file: str) -> Split:
    if images.dtype != np.uint8 or images.ndim != 3 or labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise UserError(f"{file}: images {images.dtype}{images.shape}, labels {labels.dtype}{labels.shape}: not MNIST")
    check_labels(len(labels), len(images), int(labels.max(initial=0)), CLASSES, file)
    return Split(images[..., np.newaxis], labels.astype(np.uint8, copy=False))
