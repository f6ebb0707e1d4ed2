"""Both loaders deliver the stream's batches, in order, whatever their workers."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from sites.processes import wait_for

from harness.errors import HarnessError, UserError
from harness.pipelines.stream import BatchStream
from harness.workloads.dcgan_mnist.recipe import Recipe

pytest.importorskip("tensorflow")
pytest.importorskip("torch")

from harness.pipelines.keras_sequence import KerasSequence
from harness.pipelines.torch_memory import TorchMemory
from harness.pipelines.torch_memory import build as build_torch

pytestmark = pytest.mark.framework
BATCH = 5


def keras_loader(stream, workers=0, multiprocess=False, queue_size=4):
    return KerasSequence(stream, BATCH, workers, multiprocess, queue_size)


LOADERS = {
    "keras-0": keras_loader,
    "keras-1-thread": lambda s: keras_loader(s, 1),
    "keras-3-threads": lambda s: keras_loader(s, 3),
    "keras-2-processes": lambda s: keras_loader(s, 2, True),
    "torch-0": lambda s: TorchMemory(s, BATCH, 0, None),
    "torch-1": lambda s: TorchMemory(s, BATCH, 1, 1),
    "torch-2": lambda s: TorchMemory(s, BATCH, 2, 3),
}
each_loader = pytest.mark.parametrize("loader", LOADERS.values(), ids=LOADERS.keys())
each_with_workers = pytest.mark.parametrize(
    "loader", [make for name, make in LOADERS.items() if "-0" not in name], ids=[n for n in LOADERS if "-0" not in n]
)


class Slow(Recipe):
    """Batches that take a while, unevenly, so that workers overtake one another."""

    def augment(self, images, random):
        time.sleep(random.uniform(0, 0.01))
        return images


class Failing(Recipe):
    def augment(self, images, random):
        raise ValueError("an unreadable sample")


class Blocking(Recipe):
    def augment(self, images, random):
        threading.Event().wait(20)
        return images


def numbered(recipe=None, samples=37, rank=0, world=1):
    images = np.arange(samples, dtype=np.float32).reshape(-1, 1, 1, 1)
    return BatchStream(images, np.arange(samples), recipe or Recipe(), BATCH, rank=rank, world=world, seed=1)


@pytest.fixture
def opened():
    """Loaders opened here are closed, twice, whatever happens."""
    loaders = []
    yield lambda loader: loaders.append(loader) or loader
    for loader in loaders:
        loader.close()
        loader.close()


def take(loader, count):
    return list(itertools.islice(loader.batches(), count))


@each_loader
def test_batches_of_the_stream_in_order(opened, loader):
    stream = numbered(Slow())
    for number, batch in enumerate(take(opened(loader(stream)), 20)):
        assert batch.samples == BATCH
        np.testing.assert_array_equal(np.asarray(batch.data[1]), stream.indices(number))
        np.testing.assert_array_equal(np.asarray(batch.data[0]).reshape(-1), stream.indices(number))


@each_with_workers
def test_ranks_deliver_each_sample_once(opened, loader):
    """Two ranks, 37 samples in batches of 5: after 4 batches each, 40 positions, the first 37 of them one epoch."""
    parts = [
        np.concatenate([np.asarray(b.data[1]) for b in take(opened(loader(numbered(rank=rank, world=2))), 4)])
        for rank in range(2)
    ]
    laid = np.stack(parts, axis=1).reshape(-1)
    assert sorted(laid[:37]) == list(range(37))


@pytest.mark.parametrize(
    ("loader", "depth"),
    [
        (LOADERS["keras-1-thread"], 4),
        (LOADERS["keras-2-processes"], 4),
        (LOADERS["torch-1"], 1),
        (LOADERS["torch-2"], 6),
    ],
    ids=["keras-thread", "keras-processes", "torch-1", "torch-2"],
)
def test_occupancy_counts_ready_batches(opened, loader, depth):
    """The buffer fills to its depth: max_queue_size, or workers × prefetch_factor; a batch taken is replaced."""
    pipeline = opened(loader(numbered()))
    supply = pipeline.batches()
    next(supply)
    assert wait_for(lambda: pipeline.occupancy() == depth)


@pytest.mark.parametrize("multiprocess", [False, True])
def test_batches_in_the_making_are_not_counted(opened, multiprocess):
    pipeline = opened(keras_loader(numbered(Blocking()), 1, multiprocess))
    pipeline._enqueuer.start()
    assert wait_for(lambda: pipeline._enqueuer.future_queue.full())
    assert pipeline.occupancy() == 0


@each_with_workers
def test_a_workers_cpus(opened, loader):
    pipeline = opened(loader(numbered()))
    take(pipeline, 1)
    assert pipeline.worker_cpus() == sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize("loader", [LOADERS["keras-0"], LOADERS["torch-0"]], ids=["keras", "torch"])
def test_without_workers_nothing_is_buffered(opened, loader):
    pipeline = opened(loader(numbered()))
    take(pipeline, 2)
    assert (pipeline.occupancy(), pipeline.worker_cpus()) == (None, None)


@each_loader
def test_a_workers_error_reaches_the_training_thread(opened, loader):
    with pytest.raises(ValueError, match="an unreadable sample"):
        take(opened(loader(numbered(Failing()))), 1)


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_killed_worker_process_is_an_error_not_a_hang(opened, tmp_path, is_idle):
    """An idle one takes the lock of the task queue with it, for which Python's own way to end a pool waits for ever."""
    begun = tmp_path / "begun"

    class Begun(Blocking):
        def augment(self, images, random):
            begun.touch()
            return super().augment(images, random)

    pipeline = opened(keras_loader(numbered(Begun()), 1, True))
    if is_idle:
        os.kill(pipeline._pids[0], signal.SIGKILL)
    else:
        threading.Thread(target=lambda: (wait_for(begun.exists), os.kill(pipeline._pids[0], signal.SIGKILL))).start()
    with pytest.raises(HarnessError, match="worker processes .* died"):
        take(pipeline, 1)


@each_with_workers
def test_closing_ends_workers(loader):
    threads = threading.active_count()
    pipeline = loader(numbered())
    take(pipeline, 2)
    pids = _children()
    pipeline.close()
    assert wait_for(lambda: not (set(pids) & set(_children())) and threading.active_count() <= threads)


def _children() -> list[int]:
    import psutil

    found = []
    for process in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # it may end while it is looked at
            found += [process.pid] if "resource_tracker" not in " ".join(process.cmdline()) else []
    return found


def test_torch_workers_cannot_do_without_a_buffer(maker):
    with pytest.raises(UserError, match="prefetch: 0 with workers"):
        build_torch(maker.context("dcgan_mnist", "torch", workers=2, prefetch=0))
