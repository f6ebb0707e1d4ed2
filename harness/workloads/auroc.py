"""Area under the receiver operating characteristic, per class, of what a model said during training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: steps whose answers a session keeps: some thousand samples, a few hundred kB
KEPT_STEPS = 100


def auroc(scores: NDArray[np.floating[Any]], labels: NDArray[np.floating[Any]]) -> list[float | None]:
    """Probability that a sample with a label scores above one without, ties counted half; for each class.

    The Mann-Whitney statistic over the product of the two counts. ``scores`` and ``labels`` are ``(n, classes)``,
    labels 0 or 1. None for a class that all samples have, or none.
    """
    return [_area(scores[:, i], labels[:, i] > 0.5) for i in range(scores.shape[1])]


def _area(scores: NDArray[np.floating[Any]], positive: NDArray[np.bool_]) -> float | None:
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        return None
    _, where, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[where]  # from 1; equal scores share their mean rank
    above = float(ranks[positive].sum()) - positives * (positives + 1) / 2
    return above / (positives * negatives)


def quality(answers: Sequence[tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]]) -> dict[str, Any]:
    """The fields of a ``quality`` event from ``(scores, labels)`` of some steps, each ``(b, classes)``."""
    if not answers:
        return {}
    scores, labels = (np.concatenate(column) for column in zip(*answers, strict=True))
    areas = auroc(scores, labels)
    known = [area for area in areas if area is not None]
    return {
        "of": "training samples as the model saw them in its last steps",
        "samples": len(scores),
        "auroc": sum(known) / len(known) if known else None,
        "auroc_by_class": areas,
    }
