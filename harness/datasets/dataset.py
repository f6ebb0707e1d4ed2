"""A labelled image set held in memory, with the facts that every result must carry about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Images = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Split:
    """Images (n, height, width, channels) and their class numbers (n,)."""

    images: Images
    labels: Labels


@dataclass(frozen=True)
class Dataset:
    """A whole set. ``origin`` is ``real`` only where the published checksums matched.

    ``verified``: every file matched the published checksums (real) or those of its own manifest (made).
    ``origin`` is ``unknown`` where neither applies.
    """

    name: str
    format: str
    origin: str
    verified: bool
    train_images: Images
    train_labels: Labels
    test_images: Images
    test_labels: Labels


def assemble(form: str, origin: str, verified: bool, train: Split, test: Split) -> Dataset:
    """A :class:`Dataset` of the two splits, named as sweeps name it."""
    name = form if origin == "real" else f"{origin}:{form}"
    return Dataset(name, form, origin, verified, train.images, train.labels, test.images, test.labels)
