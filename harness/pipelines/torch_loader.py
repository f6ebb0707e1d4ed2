"""A torch ``DataLoader`` over a supply that never ends, with its buffer counted.

``workers`` are processes (``num_workers``; 0: the training thread makes the batches), ``prefetch`` is torch's
``prefetch_factor``: batches in flight per worker, 2 unless set. One item of the data set is a whole batch, made in the
worker, so nothing is collated.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch.utils.data
from numpy.typing import NDArray

from harness.errors import UserError
from harness.pipelines.assembly import Assembler, Finish, Made, Part
from harness.pipelines.corrupt import Losses
from harness.pipelines.interface import option
from harness.pipelines.order import Order
from harness.runtime.interfaces import Batch, RunContext

PREFETCH = 2
#: fewer are computed by the calling thread alone (at::internal::GRAIN_SIZE)
_SERIAL_ELEMENTS = 32768


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

    Workers live as long as the run. ``epoch``: after so many of the rank's batches they are ended and new ones started,
    as a DataLoader without ``persistent_workers`` does.

    Raises:
        UserError: ``prefetch`` 0 with workers.
    """

    def __init__(self, context: RunContext, assembler: Assembler, epoch: int | None = None):
        check_buffer(context.axes)
        self._context = context
        self._assembler = assembler
        self._epoch = epoch
        self._losses = Losses(option(context.axes, "corrupt") == "skip", context.note)
        self._loader = self._start(0)

    def _start(self, begin: int) -> Loader:
        axes = self._context.axes
        dataset = _Assembled(self._assembler, begin, self._epoch and begin + self._epoch)
        return Loader(dataset, axes.workers, axes.prefetch, pin=pinned(self._context))

    def batches(self) -> Iterator[Batch]:
        begin = 0
        while True:
            count = 0
            for made in self._loader:
                for batch in delivered(made, self._losses, self._assembler):
                    count += 1
                    yield batch
            if self._epoch is None:
                return
            if not count:
                raise UserError("an epoch of this rank does not fill a batch; use smaller ones, or persistent_workers")
            begin += self._epoch
            self._loader.close()
            self._loader = self._start(begin)

    def occupancy(self) -> int | None:
        return self._loader.occupancy()

    def worker_cpus(self) -> list[int] | None:
        return self._loader.worker_cpus()

    def close(self) -> None:
        self._losses.summarise()
        self._loader.close()


def finish_of(context: RunContext) -> Finish:
    """What is done with a point's images, with torch's way to mirror them."""
    return Finish.of(context, mirrored)


def mirrored(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """``(h, w, c)`` with left and right exchanged, 10 times as fast as by NumPy.

    Some rows at a time: from 32768 elements on torch would share the work among OpenMP threads, of which each loader
    thread would start some of its own.
    """
    made = np.empty_like(image)
    step = max(1, (_SERIAL_ELEMENTS - 1) // image[0].size)
    for top in range(0, len(image), step):
        made[top : top + step] = torch.from_numpy(image[top : top + step]).flip(1).numpy()
    return made


def epoch_of(context: RunContext, order: Order) -> int | None:
    """Batches after which workers start anew; None where they last."""
    return None if option(context.axes, "persistent_workers") else len(order)


def pinned(context: RunContext) -> bool:
    """Whether batches are made in page-locked memory."""
    return bool(option(context.axes, "pin_memory")) and context.device.startswith("cuda")


def delivered(made: Any, losses: Losses, assembler: Assembler) -> Iterator[Batch]:
    """The batch that a worker made (:class:`~harness.pipelines.assembly.Made` with tensors), if it is one.

    Raises:
        UserError: an image was lost that may not be skipped, or there were only such.
    """
    images, labels, fresh, lost = made
    losses.add(lost)
    if len(images):
        yield Batch((images, labels), fresh, len(images))
    elif len(lost) >= assembler.patience:
        raise UserError(f"none of {len(lost)} images in a row could be read or decoded; the last: {lost[-1].file}")


def tensors(made: Made) -> tuple[Any, Any, int, list[Any]]:
    """The same with tensors, images ``(b, c, h, w)``; nothing is copied."""
    images = torch.from_numpy(made.images).permute(0, 3, 1, 2)
    return images, torch.from_numpy(made.labels), made.fresh, made.lost


class _Assembled(torch.utils.data.IterableDataset[Any]):
    """The batches of one worker."""

    def __init__(self, assembler: Assembler, begin: int, end: int | None):
        self._assembler = assembler
        self._begin = begin
        self._end = end

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        part = Part(0, 1, self._begin, self._end)
        if worker is not None:
            part = part._replace(worker=worker.id, workers=worker.num_workers)
            # as default_collate does: a batch made in shared memory need not be copied there to be sent
            self._assembler.allocate = _shared
        yield from map(tensors, self._assembler.batches(part))


def _shared(shape: tuple[int, ...]) -> Any:
    shared: Any = torch.empty(shape, dtype=torch.uint8)
    return shared.share_memory_().numpy()


def _start_worker(_: int) -> None:
    # Ctrl-C reaches the whole process group; the training process ends its workers itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
