"""An endless, seeded stream of batches from arrays in memory; framework-free, shared by both frameworks' loaders.

Batch ``i`` is a pure function of ``i``: any worker, thread or process may make it, in any order, and the same seed
gives the same batches whatever the number of workers.
"""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.catalog import DATASETS, WORKLOADS, load, lookup, split_dataset
from harness.errors import UserError
from harness.runtime.interfaces import RunContext

Images = NDArray[np.float32]
Labels = NDArray[np.int64]


class Recipe(Protocol):
    """A workload's preparation of samples: once when the data are loaded, and again for every batch."""

    def prepare(self, images: NDArray[np.uint8]) -> Images:
        """uint8 ``(n, h, w, c)`` → float32 ``(n, h, w, c)``, once."""

    def augment(self, images: Images, random: np.random.Generator) -> Images:
        """float32 ``(b, h, w, c)`` → the same shape, per batch; must not change its input."""


class BatchStream:
    """Batches ``(images (b, h, w, c) float32, labels (b,) int64)`` of one rank, numbered from 0 without end.

    The epochs, each a fresh permutation of the ``n`` samples, are laid end to end; rank ``r`` of ``w`` takes the
    positions r, r+w, r+2w, … So over every epoch's n positions each sample is delivered once over all ranks, the
    ranks' parts are disjoint, and batch ``i`` of all ranks together is batch ``i`` of a single rank with a batch size
    ``w`` times as large. Every batch is full: it may reach from one epoch into the next, where Keras's ``fit`` would
    end the epoch on a smaller batch; so all steps cost the same and can be compared.
    """

    def __init__(
        self, images: Images, labels: Labels, recipe: Recipe, batch_size: int, *, rank: int, world: int, seed: int
    ):
        self._images = images
        self._labels = labels
        self._recipe = recipe
        self._batch_size = batch_size
        self._rank = rank
        self._world = world
        self._seed = seed
        self._orders: dict[int, NDArray[np.int64]] = {}

    def __getitem__(self, index: int) -> tuple[Images, Labels]:
        """Batch ``index``; safe to call from several threads at once."""
        chosen = self.indices(index)
        random = np.random.default_rng((self._seed, 1, self._rank, index))
        return self._recipe.augment(self._images[chosen], random), self._labels[chosen]

    def indices(self, index: int) -> NDArray[np.int64]:
        """Which samples make up batch ``index``, ``(b,)``."""
        places = np.arange(index * self._batch_size, (index + 1) * self._batch_size) * self._world + self._rank
        epochs, offsets = np.divmod(places, len(self._images))
        chosen = np.empty(self._batch_size, np.int64)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            chosen[here] = self._order(int(epoch))[offsets[here]]
        return chosen

    def _order(self, epoch: int) -> NDArray[np.int64]:
        # Two threads may compute one permutation, which is harmless; the dict is replaced whole, so readers are safe.
        order = self._orders.get(epoch)
        if order is None:
            order = np.random.default_rng((self._seed, 0, epoch)).permutation(len(self._images))
            self._orders = {old: kept for old, kept in self._orders.items() if old >= epoch - 1} | {epoch: order}
        return order


def load_stream(context: RunContext) -> BatchStream:
    """Read the run's data set whole into memory, prepare it by the workload's recipe; notes a ``data`` event.

    Raises:
        UserError: no data directory, a data set that cannot be read, or one of another shape than its format says.
    """
    axes = context.axes
    workload = lookup(WORKLOADS, axes.workload, "workload")
    _, form = split_dataset(axes.dataset)
    spec = lookup(DATASETS, form, "data set")
    if context.data_path is None or workload.recipe is None:
        raise UserError(f"workload {axes.workload} needs a data set directory and a recipe to read it in memory")
    dataset = load(spec.reader)(context.data_path)
    if dataset.train_images.shape[1:] != spec.sample_shape:
        raise UserError(f"{context.data_path}: images are {dataset.train_images.shape[1:]}, not {spec.sample_shape}")
    _note_data(context, dataset)
    recipe = load(workload.recipe)()
    return BatchStream(
        recipe.prepare(dataset.train_images),
        dataset.train_labels.astype(np.int64),
        recipe,
        axes.batch_size,
        rank=context.ranks.rank,
        world=context.ranks.world,
        seed=context.spec.seed,
    )


def _note_data(context: RunContext, dataset: Any) -> None:
    images, labels = dataset.train_images, dataset.train_labels
    digest = hashlib.sha256(np.ascontiguousarray(images).data)
    digest.update(np.ascontiguousarray(labels).data)
    context.note(
        "data",
        dataset=dataset.name,
        origin=dataset.origin,
        path=str(context.data_path),
        samples=len(images),
        bytes=images.nbytes + labels.nbytes,
        digest=digest.hexdigest(),
        verified=dataset.verified,
    )
    wanted, _ = split_dataset(context.axes.dataset)
    if dataset.origin != wanted:
        context.note(
            "finding",
            code="data_origin",
            evidence={"wanted": context.axes.dataset, "found": dataset.name, "path": str(context.data_path)},
            advice=f"the directory holds {dataset.name}; name that in the sweep, or put {context.axes.dataset} there",
        )
