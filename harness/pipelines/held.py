"""Images that were decoded and resized ahead of time, each rank's part of them in its memory. Framework-free."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from harness import cgroups
from harness.datasets.imagenet import WHOLE_IMAGE
from harness.datasets.stored import mapped_arrays, open_stored
from harness.errors import UserError
from harness.pipelines.assembly import Finish, Part, Sample
from harness.pipelines.decoding import Pixels, resized
from harness.pipelines.encoded import as_labels, data_directory
from harness.pipelines.interface import batch_form
from harness.pipelines.order import Order
from harness.runtime.interfaces import RunContext
from harness.units import format_bytes


def held_part(context: RunContext, copies: int = 1) -> tuple[Pixels, NDArray[Any]]:
    """Every ``world``-th prepared image (encoding npy), from the rank's own on, with labels as batches have them.

    ``copies`` of them will be in memory at a time.

    Raises:
        UserError: no prepared images there, fewer than ranks, or more than the node has memory for.
    """
    stored = open_stored(data_directory(context), context.axes.encoding)
    rank, world = context.ranks.rank, context.ranks.world
    images, labels, begin = [], [], 0
    shards = mapped_arrays(stored, "train")
    _check_room(context, copies * sum(shard.nbytes for shard, _ in shards) * context.ranks.local_world // world)
    for shard, numbers in shards:
        own = slice((rank - begin) % world, None, world)
        images.append(shard[own])
        labels.append(numbers[own])
        begin += len(shard)
    if begin < world:
        raise UserError(f"{stored.path}: {begin} images cannot be shared by {world} ranks")
    return np.concatenate(images), as_labels(np.concatenate(labels), batch_form(context.axes).multi_label)


def _check_room(context: RunContext, needed: int) -> None:
    """Refuse at once what the kernel would end in some minutes, with a word in nobody's log but its own."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    room = min(cgroups.memory_limit_bytes() or machine, machine)
    if needed > room:
        raise UserError(
            f"{context.data_path}: the prepared images of this node's ranks take {format_bytes(needed)} of memory, and "
            f"the job may have {format_bytes(room)}: ask for more (memory: in the sweep), or use more nodes"
        )


@dataclass(frozen=True)
class HeldSupply:
    """Images ``(n, h, w, c)`` in memory; those of another size than augmentation starts from are resized each time."""

    images: Pixels
    labels: NDArray[Any]
    order: Order
    finish: Finish

    def samples(self, part: Part) -> Iterator[Sample]:
        height, width = self.finish.stored
        fits = self.images.shape[1:3] == (height, width)
        for number in part.numbers():
            random = self.order.random(number)
            for index in self.order.indices(number):
                image = self.images[index]
                if not fits:
                    image = resized(Image.fromarray(image), WHOLE_IMAGE, height, width, image.shape[-1])
                yield Sample([image], self.labels[index], random)
