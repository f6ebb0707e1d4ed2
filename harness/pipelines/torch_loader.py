"""A torch ``DataLoader`` over a supply that never ends, with its buffer counted.

``workers`` are processes (``num_workers``; 0: the training thread makes the batches), ``prefetch`` is torch's
``prefetch_factor``: batches in flight per worker, 2 unless set. One item of the data set is a whole batch, made in the
worker, so nothing is collated. Workers live as long as the run, which has no epochs to restart them at.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import torch.utils.data

from harness.errors import UserError
from harness.pipelines.assembly import Assembler, Finish, Made
from harness.pipelines.corrupt import Losses
from harness.pipelines.interface import option
from harness.runtime.interfaces import Batch, RunContext

PREFETCH = 2


def check_buffer(axes: Any) -> None:
    """Refuse what the DataLoader cannot do.

    Raises:
        UserError: ``prefetch`` 0 with workers.
    """
    if axes.workers and axes.prefetch == 0:
        raise UserError("prefetch: 0 with workers: torch workers hold at least one batch each; use 1, or workers: 0")


class Loader:
    """A ``DataLoader`` whose items are batches. Worker processes are forked here, and begin to fill their buffer."""

    def __init__(self, dataset: Any, workers: int, prefetch: int | None, *, pin: bool = False, sampler: Any = None):
        parallel: dict[str, Any] = {}
        if workers:
            # fork: what the data set holds is shared copy on write; newer Pythons would pickle it to each worker
            parallel = {
                "prefetch_factor": prefetch or PREFETCH,
                "multiprocessing_context": "fork",
                "worker_init_fn": _start_worker,
            }
        loader = torch.utils.data.DataLoader(
            dataset, batch_size=None, sampler=sampler, num_workers=workers, pin_memory=pin, **parallel
        )
        self._workers = workers
        self._iterator: Any = iter(loader)

    def __iter__(self) -> Iterator[Any]:
        yield from self._iterator

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


class ImageLoader:
    """Batches of one rank's images, made by DataLoader workers.

    Raises:
        UserError: ``prefetch`` 0 with workers.
    """

    def __init__(self, context: RunContext, assembler: Assembler):
        check_buffer(context.axes)
        self._context = context
        self._losses = Losses(option(context.axes, "corrupt") == "skip", context.note)
        axes = context.axes
        self._loader = Loader(_Assembled(assembler), axes.workers, axes.prefetch, pin=pinned(context))

    def batches(self) -> Iterator[Batch]:
        for made in self._loader:
            yield delivered(made, self._losses, self._context)

    def occupancy(self) -> int | None:
        return self._loader.occupancy()

    def worker_cpus(self) -> list[int] | None:
        return self._loader.worker_cpus()

    def close(self) -> None:
        self._losses.summarise()
        self._loader.close()


def finish_of(context: RunContext) -> Finish:
    """What is done with a point's images, with torch's way to mirror them, 15 times as fast as NumPy's."""
    return Finish.of(context, lambda image: torch.from_numpy(image).flip(1).numpy())


def pinned(context: RunContext) -> bool:
    """Whether batches are made in page-locked memory."""
    return bool(option(context.axes, "pin_memory")) and context.device.startswith("cuda")


def delivered(made: Any, losses: Losses, context: RunContext) -> Batch:
    """The batch of what a worker made (the fields of :class:`~harness.pipelines.assembly.Made`, as tensors).

    Raises:
        UserError: an image was lost that may not be skipped, or there were only such.
    """
    images, labels, fresh, lost = made
    losses.add(lost)
    if not len(images):
        raise UserError(f"{context.data_path}: none of {len(lost)} images in a row could be read or decoded")
    return Batch((images, labels), fresh, len(images))


def tensors(made: Made) -> tuple[Any, Any, int, list[Any]]:
    """The same with tensors, images ``(b, c, h, w)``; nothing is copied."""
    images = torch.from_numpy(made.images).permute(0, 3, 1, 2)
    return images, torch.from_numpy(made.labels), made.fresh, made.lost


class _Assembled(torch.utils.data.IterableDataset[Any]):
    """The batches of one worker."""

    def __init__(self, assembler: Assembler):
        self._assembler = assembler

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            yield from map(tensors, self._assembler.batches(0, 1))
            return
        # as default_collate does: a batch made in shared memory need not be copied there to be sent
        self._assembler.allocate = _shared
        yield from map(tensors, self._assembler.batches(worker.id, worker.num_workers))


def _shared(shape: tuple[int, ...]) -> Any:
    shared: Any = torch.empty(shape, dtype=torch.uint8)
    return shared.share_memory_().numpy()


def _start_worker(_: int) -> None:
    # Ctrl-C reaches the whole process group; the training process ends its workers itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
