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
from harness.datasets.dataset import Dataset
from harness.errors import UserError
from harness.pipelines.interface import option
from harness.pipelines.order import Order
from harness.pipelines.vouched import check_origin
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

    Which samples they hold is :class:`~harness.pipelines.order.Order`'s; where Keras's ``fit`` would end an epoch on a
    smaller batch, every batch here is full, so all steps cost the same and can be compared. Copies that echoing puts
    into one batch are augmented each for itself (``echo_anew``) or alike; in two batches each has its own.
    """

    def __init__(
        self,
        images: Images,
        labels: Labels,
        recipe: Recipe,
        batch_size: int,
        *,
        rank: int,
        world: int,
        seed: int,
        echo: int = 1,
        echo_anew: bool = True,
    ):
        self._images = images
        self._labels = labels
        self._recipe = recipe
        self._order = Order(len(images), batch_size, rank=rank, world=world, seed=seed, echo=echo)
        self._echo_anew = echo_anew

    def __getitem__(self, index: int) -> tuple[Images, Labels]:
        """Batch ``index``; safe to call from several threads at once."""
        random = self._order.random(index)
        if self._echo_anew:
            chosen = self._order.indices(index)
            return self._recipe.augment(self._images[chosen], random), self._labels[chosen]
        chosen, copies = self._order.copies(index)
        return self._recipe.augment(self._images[chosen], random)[copies], self._labels[chosen][copies]

    def indices(self, index: int) -> NDArray[np.int64]:
        """Which samples make up batch ``index``, ``(b,)``."""
        return self._order.indices(index)

    def fresh(self, index: int) -> int:
        """How many samples of batch ``index`` are not copies that echoing made."""
        return self._order.fresh(index)


def load_stream(context: RunContext) -> BatchStream:
    """Read the run's data set whole into memory, prepare it by the workload's recipe; notes a ``data`` event.

    Raises:
        UserError: no data directory, a data set that cannot be read, or one of another shape than its format says.
    """
    axes = context.axes
    dataset, recipe = load_arrays(context)
    return BatchStream(
        recipe.prepare(dataset.train_images),
        dataset.train_labels.astype(np.int64),
        recipe,
        axes.batch_size,
        rank=context.ranks.rank,
        world=context.ranks.world,
        seed=context.spec.seed,
        echo=axes.echo,
        echo_anew=axes.echo == 1 or option(axes, "echo_at") == "before_augment",
    )


def load_arrays(context: RunContext) -> tuple[Dataset, Recipe]:
    """The run's data set in memory as it is published, and the workload's recipe; raises as :func:`load_stream`."""
    axes = context.axes
    workload = lookup(WORKLOADS, axes.workload, "workload")
    _, form = split_dataset(axes.dataset)
    spec = lookup(DATASETS, form, "data set")
    if context.data_path is None or workload.recipe is None:
        raise UserError(f"workload {axes.workload} needs a data set directory and a recipe to read it in memory")
    dataset: Dataset = load(spec.reader)(context.data_path)
    if dataset.train_images.shape[1:] != spec.sample_shape:
        raise UserError(f"{context.data_path}: images are {dataset.train_images.shape[1:]}, not {spec.sample_shape}")
    _note_data(context, dataset)
    return dataset, load(workload.recipe)()


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
    check_origin(context, dataset.name, dataset.origin)
