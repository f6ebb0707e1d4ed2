"""The samples kept from training, and how well a model does on them: mean cross-entropy and share of wrong answers.

A session keeps copies of its parameters between steps and is judged after the last one, so that no timed step
evaluates anything and the pipeline goes on as if nothing happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.catalog import DATASETS, WORKLOADS, load, lookup, split_dataset
from harness.errors import UserError
from harness.runtime.interfaces import RunContext

#: Samples that the model is given at a time.
CHUNK = 500
#: float32 images ``(b, h, w, c)`` to logits ``(b, classes)``.
Predict = Callable[[NDArray[np.float32]], NDArray[Any]]


class Judgement(NamedTuple):
    """Mean cross-entropy, share of wrong answers, samples."""

    loss: float
    error: float
    samples: int


class Kept(NamedTuple):
    """Prepared float32 images ``(n, h, w, c)`` and classes ``(n,)``."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]

    def chunks(self) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        for begin in range(0, len(self.labels), CHUNK):
            yield self.images[begin : begin + CHUNK], self.labels[begin : begin + CHUNK]


def kept_samples(context: RunContext) -> Kept:
    """The test samples of the run's data set, prepared as those of training, not augmented.

    Raises:
        UserError: a data set that is not held in memory, or that has no test samples.
    """
    axes = context.axes
    spec = lookup(DATASETS, split_dataset(axes.dataset or "")[1], "data set")
    recipe = lookup(WORKLOADS, axes.workload, "workload").recipe
    if context.data_path is None or recipe is None or not spec.in_memory:
        raise UserError(f"validation_window: {axes.workload} on {axes.dataset} has no samples to judge it by")
    if axes.encoding != "native":
        # the framework's own reader: no other one reads these records
        from harness.pipelines.queued import RecordSource

        source = RecordSource(context, "test")
        images, labels = source.load(np.arange(len(source)), np.random.default_rng(0))
        source.close()
        return Kept(images, labels)
    dataset = load(spec.reader)(context.data_path)
    if not len(dataset.test_labels):
        raise UserError(f"validation_window: {context.data_path} holds no test samples")
    return Kept(load(recipe)().prepare(dataset.test_images), dataset.test_labels.astype(np.int64))


def judge(predict: Predict, kept: Kept) -> Judgement:
    """How a model does on all samples."""
    loss = wrong = 0.0
    for images, labels in kept.chunks():
        logits = np.asarray(predict(images), dtype=np.float64)
        own = logits[np.arange(len(labels)), labels]
        highest = logits.max(axis=1)
        loss += float(np.sum(highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1)) - own))
        wrong += float(np.sum(logits.argmax(axis=1) != labels))
    return Judgement(loss / len(kept.labels), wrong / len(kept.labels), len(kept.labels))
