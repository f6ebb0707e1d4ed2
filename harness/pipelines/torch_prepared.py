"""Photographs and X-rays resized once, ahead of training, and held in memory, through a torch ``DataLoader``.

What is left to the workers is to crop, mirror and gather. With ``augment`` a batch is cut without resizing from images
stored with sides 8/7 of the batch's, such as 256 for 224.
"""

from __future__ import annotations

from harness.pipelines.assembly import Assembler
from harness.pipelines.held import HeldSupply, held_part
from harness.pipelines.order import Order
from harness.pipelines.torch_loader import ImageLoader, epoch_of, finish_of
from harness.runtime.interfaces import RunContext

_SEED_STEP = 1_000_003
_ADVICE = "convert the data set with --side as given here, so that the pipeline has nothing to resize"


def build(context: RunContext) -> ImageLoader:
    """The pipeline of one rank; the images read here are shared by its workers.

    Raises:
        UserError: no prepared images (encoding npy) there, fewer than ranks, or ``prefetch: 0`` with workers.
    """
    axes, finish = context.axes, finish_of(context)
    images, labels = held_part(context)
    if images.shape[1:3] != finish.stored:
        evidence = {"stored": list(images.shape[1:3]), "wanted": list(finish.stored)}
        context.note("finding", code="resized_again", evidence=evidence, advice=_ADVICE)
    # the parts are fixed, so each rank orders its own; another rank's seed would give it the same order
    order = Order(
        len(images), axes.batch_size, rank=0, world=1, seed=context.spec.seed + _SEED_STEP * context.ranks.rank
    )
    supply = HeldSupply(images, labels, order, finish)
    return ImageLoader(context, Assembler(supply, finish, axes.batch_size, patience=1), epoch_of(context, order))
