"""Encoded images in tar shards, read in sequence by the webdataset library, through a torch ``DataLoader``.

Shards are shared by ranks and workers, samples are shuffled in a buffer (``shuffle_buffer``, 1000 unless set). Every
epoch has its own order of shards; epochs are laid end to end, and the rank and the worker take every so many-th shard.
So each shard is read by one worker of one rank per epoch, whatever their numbers.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import webdataset

from harness.datasets.stored import open_stored
from harness.errors import UserError
from harness.pipelines.assembly import Assembler, Finish, Part, Sample, decoded, patience
from harness.pipelines.corrupt import Lost
from harness.pipelines.decoding import Decoder, PillowDecoder
from harness.pipelines.encoded import Encoded, data_directory
from harness.pipelines.torch_loader import ImageLoader, finish_of
from harness.runtime.interfaces import RunContext

SHUFFLE_BUFFER = 1000
_SUFFIXES = ("jpg", "png")


def build(context: RunContext) -> ImageLoader:
    """The pipeline of one rank.

    Raises:
        UserError: no tar shards there, fewer shards than ranks, or ``prefetch: 0`` with workers.
    """
    axes, ranks, finish = context.axes, context.ranks, finish_of(context)
    stored = open_stored(data_directory(context), "webdataset")
    shards = tuple(stored.files("train"))
    if len(shards) < ranks.world:
        raise UserError(
            f"{stored.path}: {len(shards)} shards cannot be shared by {ranks.world} ranks; "
            "convert into smaller ones: harness data convert --help"
        )
    _note_idle(context, len(shards))
    buffer = SHUFFLE_BUFFER if axes.shuffle_buffer is None else axes.shuffle_buffer
    supply = TarSupply(shards, finish, PillowDecoder(), ranks.rank, ranks.world, context.spec.seed, buffer)
    return ImageLoader(
        context, Assembler(supply, finish, axes.batch_size, patience(context, sum(stored.samples("train"))))
    )


@dataclass(frozen=True)
class TarSupply:
    """Samples of one rank's tar shards."""

    shards: tuple[Path, ...]
    finish: Finish
    decoder: Decoder
    rank: int
    world: int
    seed: int
    buffer: int

    def samples(self, part: Part) -> Iterator[Sample | Lost]:
        """Without end, from the first epoch on."""
        numbers = np.random.default_rng((self.seed, 1, self.rank, part.worker))
        for epoch, shards in itertools.groupby(self.own(part), lambda found: found[0]):
            sources = ({"url": str(shard)} for _, shard in shards)
            found = webdataset.tarfile_to_samples()(sources)
            if self.buffer:  # emptied at the end of an epoch, so that none runs into the next
                mixed = random.Random(f"{self.seed} {epoch} {self.rank} {part.worker}")
                found = webdataset.shuffle(self.buffer, initial=self.buffer, rng=mixed)(found)
            for sample in found:
                yield decoded(encoded(sample), self.decoder, self.finish, numbers)

    def own(self, part: Part) -> Iterator[tuple[int, Path]]:
        """The shards that a worker reads, each with the epoch it belongs to, without end."""
        places = itertools.count(self.rank + self.world * part.worker, self.world * part.workers)
        for epoch, offset in (divmod(place, len(self.shards)) for place in places):
            order = np.random.default_rng((self.seed, 0, epoch)).permutation(len(self.shards))
            yield epoch, self.shards[order[offset]]


def encoded(sample: dict[str, Any]) -> Encoded:
    """The image of a sample as webdataset groups it: ``__key__``, ``__url__``, and a file's content by its suffix."""
    content = next((sample[suffix] for suffix in _SUFFIXES if suffix in sample), b"")
    labels = json.loads(sample["json"])["labels"]
    label = labels[0] if "cls" in sample else np.array(labels)
    return Encoded(f"{sample['__url__']}: {sample['__key__']}", content, label)


def _note_idle(context: RunContext, shards: int) -> None:
    readers = context.ranks.world * max(context.axes.workers, 1)
    if shards < readers:
        evidence = {"shards": shards, "readers": readers}
        advice = (
            "epochs overlap, each reader being in another: convert into more and smaller shards, or use fewer workers"
        )
        context.note("finding", code="few_shards", evidence=evidence, advice=advice)
