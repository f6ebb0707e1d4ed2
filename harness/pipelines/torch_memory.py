"""Arrays in memory through a torch ``DataLoader``.

``workers`` are processes (``num_workers``; 0: the training thread makes the batches), ``prefetch`` is torch's
``prefetch_factor``: batches in flight per worker, 2 unless set. One item of the data set is a whole batch, so that the
augmentation of a batch is vectorised as in the Keras pipeline, and nothing is collated.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from typing import Any

import torch.utils.data

from harness.errors import UserError
from harness.pipelines.stream import BatchStream, load_stream
from harness.runtime.interfaces import Batch, RunContext


def build(context: RunContext) -> TorchMemory:
    """The pipeline of one rank. Loader processes are forked here, and begin to fill their buffer.

    Raises:
        UserError: ``prefetch: 0`` with workers, which the DataLoader cannot do.
    """
    axes = context.axes
    if axes.workers and axes.prefetch == 0:
        raise UserError("prefetch: 0 with workers: torch workers hold at least one batch each; use 1, or workers: 0")
    return TorchMemory(
        load_stream(context), axes.batch_size, axes.workers, axes.prefetch, pin=context.device.startswith("cuda")
    )


class TorchMemory:
    """Batches of one rank, in order, made by DataLoader workers."""

    def __init__(self, stream: BatchStream, batch_size: int, workers: int, prefetch: int | None, *, pin: bool = False):
        self._batch_size = batch_size
        parallel: dict[str, Any] = {}
        if workers:
            # fork: the arrays are shared copy on write; newer Pythons would pickle them to each worker
            parallel = {
                "prefetch_factor": prefetch or 2,
                "multiprocessing_context": "fork",
                "worker_init_fn": _start_worker,
            }
        self._loader = torch.utils.data.DataLoader(
            _Numbered(stream),
            batch_size=None,
            sampler=_Forever(),
            num_workers=workers,
            pin_memory=pin,
            **parallel,
        )
        self._workers = workers
        self._iterator: Any = iter(self._loader)

    def batches(self) -> Iterator[Batch]:
        for data in self._iterator:
            yield Batch(data, self._batch_size)

    def occupancy(self) -> int | None:
        """Batches that workers have finished and the training thread has not taken.

        Counted in the iterator's own queues (torch.utils.data.dataloader, ``_MultiProcessingDataLoaderIter``): the
        workers' result queue, the queue behind the pinning thread where there is one, and those that came out of order.
        """
        if not self._workers or self._iterator is None:
            return None
        iterator = self._iterator
        queues = {id(q): q for q in (iterator._worker_result_queue, iterator._data_queue)}
        early = sum(1 for task in list(iterator._task_info.values()) if len(task) == 2)
        return early + sum(int(q.qsize()) for q in queues.values())

    def worker_cpus(self) -> list[int] | None:
        if not self._workers or self._iterator is None:
            return None
        return sorted(os.sched_getaffinity(self._iterator._workers[0].pid))

    def close(self) -> None:
        """Ends the workers: the iterator does so when the last reference to it goes."""
        if self._workers and self._iterator is not None:
            self._iterator._shutdown_workers()
        self._iterator = None


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


def _start_worker(_: int) -> None:
    # Ctrl-C reaches the whole process group; the training process ends its workers itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
