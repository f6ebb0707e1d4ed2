"""The area under the ROC against scikit-learn's, ties included, and where it is not defined."""

from __future__ import annotations

import numpy as np
import pytest

from harness.workloads.auroc import auroc, quality


@pytest.mark.parametrize("decimals", [12, 1, 0])
def test_as_scikit_learn_computes_it(decimals: int) -> None:
    """Scores rounded to 1 or 0 decimals have many ties."""
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(decimals)
    labels = random.integers(0, 2, (200, 5)).astype(np.float32)
    scores = np.round(labels * 0.3 + random.normal(size=labels.shape), decimals)
    expected = [metrics.roc_auc_score(labels[:, i], scores[:, i]) for i in range(5)]
    assert auroc(scores, labels) == pytest.approx(expected, abs=1e-12)


def test_by_hand() -> None:
    """Of the pairs (with, without) (3, 1), (3, 2), (1, 1), (1, 2): two won, one tied, one lost."""
    scores = np.array([[3.0], [1.0], [1.0], [2.0]])
    assert auroc(scores, np.array([[1.0], [1.0], [0.0], [0.0]])) == [0.625]


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_not_defined_without_both_kinds(label: float) -> None:
    assert auroc(np.array([[1.0], [2.0]]), np.full((2, 1), label)) == [None]


def test_quality_is_the_mean_over_the_classes_where_it_is_defined() -> None:
    step = (np.array([[2.0, 1.0]]), np.array([[1.0, 0.0]])), (np.array([[1.0, 5.0]]), np.array([[0.0, 0.0]]))
    found = quality(step)
    assert (found["samples"], found["auroc"], found["auroc_by_class"]) == (2, 1.0, [1.0, None])
    assert quality([]) == {}
    assert quality(step[:1])["auroc"] is None
