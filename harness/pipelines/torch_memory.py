"""Arrays in memory through a torch ``DataLoader``.

One item of the data set is a whole batch, so that the augmentation of a batch is vectorised as in the Keras pipeline,
and nothing is collated.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch.utils.data

from harness.pipelines.stream import BatchStream, load_stream
from harness.pipelines.torch_loader import Loader, check_buffer
from harness.runtime.interfaces import Batch, RunContext


def build(context: RunContext) -> TorchMemory:
    """The pipeline of one rank. Loader processes are forked here, and begin to fill their buffer.

    Raises:
        UserError: ``prefetch: 0`` with workers, which the DataLoader cannot do.
    """
    axes = context.axes
    check_buffer(axes)
    return TorchMemory(
        load_stream(context), axes.batch_size, axes.workers, axes.prefetch, pin=context.device.startswith("cuda")
    )


class TorchMemory:
    """Batches of one rank, in order, made by DataLoader workers."""

    def __init__(self, stream: BatchStream, batch_size: int, workers: int, prefetch: int | None, *, pin: bool = False):
        self._batch_size = batch_size
        self._loader = Loader(_Numbered(stream), workers, prefetch, pin=pin, sampler=_Forever())

    def batches(self) -> Iterator[Batch]:
        for data in self._loader:
            yield Batch(data, self._batch_size)

    def occupancy(self) -> int | None:
        return self._loader.occupancy()

    def worker_cpus(self) -> list[int] | None:
        return self._loader.worker_cpus()

    def close(self) -> None:
        self._loader.close()


class _Numbered(torch.utils.data.Dataset[Any]):
    """A map-style data set whose item ``i`` is batch ``i``."""

    def __init__(self, stream: BatchStream):
        self._stream = stream

    def __getitem__(self, index: int) -> Any:
        images, labels = self._stream[index]
        return torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(labels)


class _Forever(torch.utils.data.Sampler[int]):
    """0, 1, 2, … without end: the stream has no epochs to restart workers at."""

    def __iter__(self) -> Iterator[int]:
        return itertools.count()
