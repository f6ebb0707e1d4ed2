"""Samples in memory, the queue with its enqueue threads, and the constant batch."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sites.processes import wait_for

pytest.importorskip("tensorflow")

from harness import catalog
from harness.datasets import mnist
from harness.datasets.convert.run import Settings, convert
from harness.datasets.convert.tfrecord import frame
from harness.datasets.make import make
from harness.datasets.manifest import Request
from harness.errors import UserError
from harness.pipelines.record_index import Records
from harness.pipelines.stream import load_stream
from harness.runtime import storage

pytestmark = pytest.mark.framework
BATCH = 5


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sets") / "synthetic-mnist"
    counts = {"train": 53, "test": 10}
    make(path, Request(format="mnist", origin="synthetic", counts=counts))
    return path


@pytest.fixture(scope="module")
def records(digits) -> Path:
    convert(digits, digits.with_name("records"), Settings("tfrecord", shard_samples=8))
    return digits.with_name("records")


@pytest.fixture
def opened(maker):
    pipelines = []

    def open_one(name, path, *, workload="lenet_mnist", rank=0, world=1, **axes):
        axes = {"batch_size": BATCH} | axes
        context = maker.context(workload, "tensorflow", rank=rank, world=world, data_path=path, pipeline=name, **axes)
        pipelines.append(catalog.load(catalog.PIPELINES[name].frameworks["tensorflow"])(context))
        return pipelines[-1]

    yield open_one
    for pipeline in pipelines:
        pipeline.close()
        pipeline.close()


def take(pipeline, count):
    return [tuple(np.asarray(part) for part in b.data) for b in itertools.islice(pipeline.batches(), count)]


def images_of(batches):
    return [image.tobytes() for images, _ in batches for image in images]


@pytest.mark.parametrize(("name", "workers"), [("tf_memory", 1), ("tf_memory", 3), ("tf_queue", 0), ("tf_queue", 3)])
@pytest.mark.parametrize("rank", [0, 1])
def test_the_batches_are_the_streams(opened, maker, digits, name, workers, rank):
    """Whatever the number of workers; the queue cuts other batches out of the same order."""
    stream = load_stream(
        maker.context("lenet_mnist", "tensorflow", data_path=digits, rank=rank, world=2, batch_size=BATCH)
    )
    for number, (images, labels) in enumerate(take(opened(name, digits, workers=workers, rank=rank, world=2), 15)):
        wanted = stream[number]
        np.testing.assert_array_equal(images, wanted[0])
        np.testing.assert_array_equal(labels, wanted[1])
        assert images.dtype == np.float32


def test_augmented_batches_are_the_streams_too(opened, maker, tmp_path):
    make(
        tmp_path,
        Request(format="cifar10", origin="synthetic", counts={"train": 20, "test": 10}, options={"layout": "python"}),
    )
    axes = {"data_path": tmp_path, "batch_size": BATCH, "seed": 4}
    stream = load_stream(maker.context("resnet20_cifar10", "tensorflow", **axes))
    found = take(opened("tf_memory", tmp_path, workload="resnet20_cifar10", seed=4, workers=3), 6)
    np.testing.assert_array_equal(np.stack([images for images, _ in found]), np.stack([stream[i][0] for i in range(6)]))


@pytest.mark.parametrize("workers", [0, 1, 4])
@pytest.mark.parametrize("world", [1, 2])
def test_the_queue_delivers_each_record_once_an_epoch(opened, digits, records, workers, world):
    options = {"enqueue_samples": 3}
    parts = []
    for rank in range(world):
        axes = {"encoding": "tfrecord", "workers": workers, "rank": rank, "world": world, "options": options}
        parts.append(images_of(take(opened("tf_queue", records, **axes), 25)))
    laid = list(itertools.chain.from_iterable(zip(*parts, strict=True)))
    dataset = mnist.read(digits)
    wanted = Counter(image.tobytes() for image in dataset.train_images)
    as_pixels = [np.rint((np.frombuffer(i, np.float32) + 0.5) * 255).astype(np.uint8).tobytes() for i in laid]
    assert Counter(as_pixels[:53]) == wanted
    assert Counter(as_pixels[53:106]) == wanted
    assert as_pixels[:53] != as_pixels[53:106]


def test_the_queue_fills_to_its_capacity(opened, digits):
    """Which here is 42 samples: eight batches of five and two over."""
    pipeline = opened("tf_queue", digits, workers=2, options={"queue_capacity": 42, "enqueue_samples": 2})
    supply = pipeline.batches()
    for _ in range(3):
        next(supply)
        assert wait_for(lambda: pipeline.occupancy() == 8)
    assert wait_for(lambda: int(pipeline._queue.size()) == 42)


def test_the_queue_fills_before_the_first_step(opened, digits, monkeypatch):
    pauses = []
    monkeypatch.setattr("frameworks_support.time", SimpleNamespace(monotonic=time.monotonic, sleep=pauses.append))
    options = {"queue_capacity": 37, "enqueue_samples": 1, "fill_s": 2.5}
    pipeline = opened("tf_queue", digits, workers=1, options=options)
    assert pauses == [2.5]
    assert wait_for(lambda: int(pipeline._queue.size()) == 37)
    assert pipeline.occupancy() == 7
    assert pipeline.worker_cpus() == sorted(os.sched_getaffinity(0))


def test_a_queue_too_small_for_a_batch(opened, digits):
    with pytest.raises(UserError, match="queue_capacity 20: too little for a batch of 5 and one enqueuing of 32"):
        opened("tf_queue", digits, options={"queue_capacity": 20})


@pytest.mark.parametrize("workers", [0, 3])
def test_closing_ends_threads_that_wait_for_room(opened, digits, workers):
    before = threading.active_count()
    pipeline = opened("tf_queue", digits, workers=workers, options={"queue_capacity": 40})
    take(pipeline, 1)
    pipeline.close()
    assert wait_for(lambda: threading.active_count() <= before)


@pytest.fixture
def torn(records, tmp_path) -> Path:
    """The records with one whose image is none."""
    import shutil

    import tensorflow as tf

    shutil.copytree(records, tmp_path / "set")
    file = sorted((tmp_path / "set").glob("train-*"))[2]
    found = [bytes(r.numpy()) for r in tf.data.TFRecordDataset(str(file))]
    found[1] = found[1].replace(b"\x89PNG", b"\x89PGN")
    file.write_bytes(b"".join(map(frame, found)))
    return tmp_path / "set"


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_corrupt_record_ends_the_run_by_name(opened, torn, workers):
    with pytest.raises(UserError, match=r"^train_0000\d\d: .*corrupt: skip"):
        take(opened("tf_queue", torn, workers=workers, encoding="tfrecord"), 30)


@pytest.mark.parametrize("workers", [0, 3])
def test_corrupt_records_are_skipped_named_and_counted(opened, maker, torn, workers):
    pipeline = opened(
        "tf_queue", torn, workers=workers, encoding="tfrecord", options={"corrupt": "skip", "enqueue_samples": 5}
    )
    seen = Counter(images_of(take(pipeline, 25))[:104])
    assert set(seen.values()) == {2}
    assert len(seen) == 52
    pipeline.close()
    found = {f["code"]: f["evidence"] for kind, f in maker.notes if kind == "finding"}
    assert found["corrupt_image"]["file"].startswith("train_0000")
    assert found["corrupt_images"]["files"] == 1


def test_a_torn_shard(opened, records, tmp_path):
    import shutil

    shutil.copytree(records, tmp_path / "set")
    file = min((tmp_path / "set").glob("train-*"))
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(UserError, match=rf"{file}: \d+ bytes where harness-files.tsv says \d+; harness data convert"):
        opened("tf_queue", tmp_path / "set", encoding="tfrecord")


@pytest.mark.parametrize("name", ["tf_memory", "tf_queue"])
def test_echo_counts_fresh_samples(opened, digits, name):
    batches = list(itertools.islice(opened(name, digits, echo=2, workers=2).batches(), 6))
    assert [batch.samples for batch in batches] == [3, 2, 3, 2, 3, 2]
    labels = np.concatenate([np.asarray(batch.data[1]) for batch in batches])
    assert (labels[::2] == labels[1::2]).all()


@pytest.mark.parametrize("workers", [0, 2])
def test_echoed_copies_are_read_and_decoded_once(opened, records, monkeypatch, workers):
    """Or echoing would save nothing of what it is for. Chunks of 8 samples, each twice."""
    read, numbers = Records.__getitem__, []
    monkeypatch.setattr(Records, "__getitem__", lambda self, number: numbers.append(number) or read(self, number))
    options = {"queue_capacity": 16, "enqueue_samples": 8}
    pipeline = opened("tf_queue", records, encoding="tfrecord", echo=2, workers=workers, options=options)
    batches = take(pipeline, 8)
    labels = np.concatenate([labels for _, labels in batches])
    assert (labels[::2] == labels[1::2]).all()
    pipeline.close()
    assert len(numbers) == len(set(numbers))  # fewer than an epoch


def test_copies_of_a_corrupt_record_are_left_out_and_others_keep_their_labels(opened, maker, digits, torn):
    options = {"corrupt": "skip", "enqueue_samples": 6}
    pipeline = opened("tf_queue", torn, encoding="tfrecord", echo=3, options=options)
    found = take(pipeline, 30)  # of 52 images, three times each, 150
    dataset = mnist.read(digits)
    whole = {image.tobytes(): label for image, label in zip(dataset.train_images, dataset.train_labels, strict=True)}
    for images, labels in found:
        pixels = np.rint((images + 0.5) * 255).astype(np.uint8)
        assert [whole[image.tobytes()] for image in pixels] == labels.tolist()
    assert set(Counter(images_of(found)[:150]).values()) == {3}
    pipeline.close()
    skipped = [f["evidence"]["skipped"] for kind, f in maker.notes if f.get("code") == "corrupt_images"]
    assert skipped == [1]


@pytest.fixture(scope="module")
def photographs(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("photos") / "tree"
    make(path, Request(format="caltech256", origin="synthetic", counts={"train": 13}, options={"classes": 2}))
    convert(path, path.with_name("npy"), Settings("npy", side=40, shard_samples=4))
    return path


@pytest.mark.parametrize("side", [40, 32])
def test_prepared_photographs_are_held_by_one_rank_each(opened, photographs, side):
    axes = {"workload": "resnet_imagenet", "dataset": "synthetic:caltech256", "encoding": "npy", "workers": 2}
    axes |= {"options": {"image_size": side}, "world": 2}
    parts = []
    for rank in range(2):
        pipeline = opened("tf_memory", photographs.with_name("npy"), rank=rank, **axes)
        size = 7 - rank
        seen = images_of(take(pipeline, 5))
        assert Counter(seen[:size]) == Counter(seen[size : 2 * size])
        parts.append(set(seen[:size]))
        assert len(parts[-1]) == size
        assert len(seen[0]) == side * side * 3
    assert not parts[0] & parts[1]


def test_photographs_are_not_held_as_published(opened, photographs):
    with pytest.raises(UserError, match="data convert synthetic:caltech256 --encoding npy"):
        opened("tf_memory", photographs, workload="resnet_imagenet", dataset="synthetic:caltech256")


@pytest.mark.parametrize(
    ("workload", "dataset", "dtype", "label_shape"),
    [
        ("lenet_mnist", "synthetic:mnist", np.float32, (BATCH,)),
        ("resnet_imagenet", "synthetic:imagenet", np.uint8, (BATCH,)),
        ("resnet_imagenet", "synthetic:chestxray14", np.uint8, (BATCH, 14)),
    ],
)
def test_one_batch_for_ever(opened, maker, workload, dataset, dtype, label_shape):
    pipeline = opened("synthetic", None, workload=workload, dataset=dataset)
    first, second = itertools.islice(pipeline.batches(), 2)
    assert first is second
    images, labels = first.data
    assert (images.dtype, tuple(labels.shape), first.samples) == (dtype, label_shape, BATCH)
    assert [fields["origin"] for kind, fields in maker.notes if kind == "data"] == ["none"]
    assert (pipeline.occupancy(), pipeline.worker_cpus()) == (None, None)


def test_a_made_up_batch_needs_no_data(maker):
    made_up, read = (
        maker.context("lenet_mnist", "tensorflow", pipeline=pipeline).spec for pipeline in ("synthetic", "tf_memory")
    )
    assert storage.data_path(made_up, {}) is None
    with pytest.raises(UserError, match="no directory /nowhere"):
        storage.data_path(read, {})
