"""A batch in the form of a point's data set, made up instead of read; no framework is imported here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.catalog import WORKLOADS, load, lookup
from harness.pipelines.interface import batch_form
from harness.runtime.interfaces import Batch, RunContext


def made_up_batch(context: RunContext) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images ``(b, h, w, c)`` and labels as the batch contract has them; notes a ``data`` event of origin ``none``.

    Pixels are noise, of the type that the workload's other pipelines deliver: prepared by its recipe where it has one,
    so that the step does the same work. Each rank has its own.
    """
    axes = context.axes
    form = batch_form(axes)
    random = np.random.default_rng((context.spec.seed, 2, context.ranks.rank))
    size = int(axes.batch_size)
    images: NDArray[Any] = random.integers(0, 256, (size, form.height, form.width, form.channels), np.uint8)
    labels: NDArray[Any] = random.integers(0, form.classes, size)
    if form.multi_label:
        labels = (random.random((size, form.classes)) < 1 / form.classes).astype(np.float32)
    if recipe := lookup(WORKLOADS, axes.workload, "workload").recipe:
        images = load(recipe)().prepare(images)
    size_bytes = images.nbytes + labels.nbytes
    context.note(
        "data",
        dataset=axes.dataset,
        origin="none",
        path=None,
        samples=size,
        bytes=size_bytes,
        digest=None,
        verified=None,
    )
    return images, labels


class Constant:
    """The same batch again and again; there is no buffer and no worker."""

    def __init__(self, data: Any, samples: int):
        self._batch = Batch(data, samples)

    def batches(self) -> Iterator[Batch]:
        while True:
            yield self._batch

    def occupancy(self) -> None:
        return

    def worker_cpus(self) -> None:
        return

    def close(self) -> None:
        """Nothing runs."""
