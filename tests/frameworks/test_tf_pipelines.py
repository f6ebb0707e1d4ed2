"""tf.data pipelines: what they deliver to whom, how often, and what they do about images that cannot be decoded."""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sites.processes import wait_for

pytest.importorskip("tensorflow")

import tensorflow as tf

from harness import catalog
from harness.datasets import imagenet
from harness.datasets.convert.run import Settings, convert
from harness.datasets.make import make
from harness.datasets.manifest import Request
from harness.errors import UserError
from harness.pipelines import tf_images, tf_records, tf_stream

pytestmark = pytest.mark.framework
SIDE = 32
BATCH = 4
FILES = 23
RECORDS = ("tf_records_old", "tf_records_new")


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """23 files, so that neither two ranks nor batches of four divide them; some with boxes, some without."""
    path = tmp_path_factory.mktemp("sets") / "synthetic-imagenet"
    counts = {"train": FILES, "test": 4}
    make(path, Request(format="imagenet", origin="synthetic", seed=4, counts=counts, options={"classes": 4}))
    return path


@pytest.fixture(scope="module")
def shards(tree) -> Path:
    """Shards of three records, the last of two."""
    convert(tree, tree.with_name("records"), Settings("tfrecord", shard_samples=3))
    return tree.with_name("records")


@pytest.fixture
def opened(maker):
    """Opens pipelines as the runtime does; they are closed, twice, whatever happens."""
    pipelines = []

    def open_one(name, path, *, rank=0, world=1, workload="resnet_imagenet", options=None, **axes):
        spec = catalog.PIPELINES[name]
        options = {"image_size": SIDE} | (options or {}) if workload == "resnet_imagenet" else options or {}
        axes = {"batch_size": BATCH, "workers": 2} | axes
        context = maker.context(
            workload, "tensorflow", rank=rank, world=world, data_path=path, pipeline=name, options=options, **axes
        )
        pipelines.append(catalog.load(spec.frameworks["tensorflow"])(context))
        return pipelines[-1]

    yield open_one
    for pipeline in pipelines:
        pipeline.close()
        pipeline.close()


def take(pipeline, samples):
    """The first ``samples`` images and labels."""
    batches = list(itertools.islice(pipeline.batches(), -(-samples // BATCH)))
    images = np.concatenate([np.asarray(batch.data[0]) for batch in batches])
    labels = np.concatenate([np.asarray(batch.data[1]) for batch in batches])
    return images[:samples], labels[:samples]


def prints(images, labels):
    """Each image with its label, as something that can be counted."""
    return [(hashlib.md5(i.tobytes()).hexdigest(), int(n)) for i, n in zip(images, labels, strict=True)]


def crops_of(tree, number, *, whole=False):
    """What one file gives, by Python's parser of its boxes."""
    files = imagenet.read(tree).train
    content = (tree / files.files[number]).read_bytes()
    boxes = [imagenet.WHOLE_IMAGE] if whole else imagenet.boxes_of(tree, files.files[number])
    image = tf.io.decode_image(content, channels=3, expand_animations=False)
    places = [[b.ymin, b.xmin, b.ymax, b.xmax] for b in boxes]
    images = tf.image.crop_and_resize(image[None], places, [0] * len(boxes), (SIDE, SIDE))
    return prints(np.rint(images.numpy()).astype(np.uint8), [files.labels[number]] * len(boxes))


def expected(tree, numbers, **how):
    return Counter(itertools.chain.from_iterable(crops_of(tree, number, **how) for number in numbers))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("world", [1, 2, 3])
def test_files_reach_one_rank_once_an_epoch_with_a_crop_for_each_box(opened, tree, workers, world):
    for rank in range(world):
        own = expected(tree, range(rank, FILES, world))
        count = own.total()
        seen = prints(*take(opened("tf_files", tree, rank=rank, world=world, workers=workers), 3 * count))
        for epoch in range(3):
            assert Counter(seen[epoch * count : (epoch + 1) * count]) == own
        assert seen[:count] != seen[count : 2 * count]


def test_some_files_have_several_boxes(tree):
    """Without which the test above would say little."""
    crops = expected(tree, range(FILES)).total()
    assert crops == FILES + 2
    assert expected(tree, range(FILES), whole=True).total() == FILES


@pytest.mark.parametrize(("boxes", "whole"), [("python", False), ("ignore", True)])
def test_boxes_by_option(opened, tree, boxes, whole):
    wanted = expected(tree, range(FILES), whole=whole)
    assert Counter(prints(*take(opened("tf_files", tree, options={"boxes": boxes}), wanted.total()))) == wanted


@pytest.mark.parametrize(
    "objects",
    [
        "",
        "<object><bndbox><xmin>-3</xmin><ymin>0</ymin><xmax>120</xmax><ymax>49</ymax></bndbox></object>",
        "<object><bndbox>\n <ymax>40</ymax>\n<xmax> 30 </xmax><ymin>20</ymin><xmin>10</xmin>\n</bndbox></object>"
        "<object><name>b</name><bndbox><xmin>90</xmin><ymin>30</ymin><xmax>5</xmax><ymax>3.5</ymax></bndbox></object>",
    ],
    ids=["none", "beyond", "two"],
)
def test_boxes_in_graph_are_those_of_the_xml_parser(tmp_path, objects):
    file = f"{imagenet.DATA}/train/n0/n0_1.JPEG"
    annotation = tmp_path / imagenet.annotation_of(file)
    annotation.parent.mkdir(parents=True)
    text = f"<annotation>\n<size><width>101</width>\n<height>51</height><depth>3</depth></size>{objects}</annotation>"
    annotation.write_text(text)
    wanted = [[b.ymin, b.xmin, b.ymax, b.xmax] for b in imagenet.boxes_of(tmp_path, file)]
    np.testing.assert_allclose(tf_images.boxes_in_graph(tf.constant(text)).numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", RECORDS)
def test_records_reach_one_rank_once_an_epoch(opened, tree, shards, name, workers):
    parts = []
    for rank in range(2):
        pipeline = opened(name, shards, rank=rank, world=2, workers=workers, encoding="tfrecord")
        size = (FILES + 1 - rank) // 2 if name == "tf_records_old" else 12 - rank
        seen = prints(*take(pipeline, 3 * size))
        epochs = [seen[epoch * size : (epoch + 1) * size] for epoch in range(3)]
        assert Counter(epochs[0]) == Counter(epochs[1]) == Counter(epochs[2])
        assert epochs[0] != epochs[1]
        parts.append(Counter(epochs[0]))
    assert parts[0] + parts[1] == expected(tree, range(FILES), whole=True)
    assert not parts[0] & parts[1]


@pytest.mark.parametrize(("name", "reads"), [("tf_records_old", FILES), ("tf_records_new", 12)])
def test_in_the_old_order_each_rank_decodes_what_all_ranks_need(opened, shards, monkeypatch, name, reads):
    decoded = []

    def counting(content, channels):
        counted = tf.numpy_function(lambda c: (decoded.append(hash(c)), c)[1], [content], tf.string)
        return tf_images.decode(counted, channels)

    monkeypatch.setattr(tf_records, "decode", counting)
    axes = {"encoding": "tfrecord", "prefetch": 0, "workers": 1}
    pipeline = opened(name, shards, rank=0, world=2, shuffle_buffer=FILES, **axes)
    take(pipeline, 12)
    assert len(set(decoded)) == reads


@pytest.mark.parametrize("name", RECORDS)
def test_decoded_records(opened, tree, tmp_path, name):
    convert(tree, tmp_path / "set", Settings("tfrecord_decoded", side=SIDE, shard_samples=8))
    images, labels = take(opened(name, tmp_path / "set", encoding="tfrecord_decoded"), FILES)
    source = imagenet.read(tree).train
    assert sorted(labels.tolist()) == sorted(source.labels.tolist())
    assert len(set(prints(images, labels))) == FILES
    assert images.std() > 20


def test_resized_jpegs_are_read_by_their_table(opened, tree, tmp_path):
    convert(tree, tmp_path / "set", Settings("jpeg", side=SIDE))
    images, labels = take(opened("tf_files", tmp_path / "set", encoding="jpeg"), FILES)
    assert len(set(prints(images, labels))) == FILES
    assert sorted(labels.tolist()) == sorted(imagenet.read(tree).train.labels.tolist())


def test_several_labels_per_image(opened, tmp_path):
    counts = {"train": 16, "test": 16}
    make(tmp_path / "set", Request(format="chestxray14", origin="synthetic", counts=counts, options={"side": 64}))
    images, labels = take(opened("tf_files", tmp_path / "set", dataset="synthetic:chestxray14"), 16)
    convert(tmp_path / "set", tmp_path / "records", Settings("tfrecord", shard_samples=8))
    axes = {"dataset": "synthetic:chestxray14", "encoding": "tfrecord"}
    again, same = take(opened("tf_records_new", tmp_path / "records", **axes), 16)
    assert labels.shape == same.shape == (16, 14)
    assert labels.dtype == np.float32
    assert {(i.tobytes(), n.tobytes()) for i, n in zip(images, labels, strict=True)} == {
        (i.tobytes(), n.tobytes()) for i, n in zip(again, same, strict=True)
    }


@pytest.fixture
def damaged(tree, tmp_path) -> tuple[Path, list[str]]:
    """A copy of the tree with two files that are no images any more."""
    path = tmp_path / "damaged"
    shutil.copytree(tree, path)
    names = [imagenet.read(path).train.files[number] for number in (3, 10)]
    (path / names[0]).write_bytes((path / names[0]).read_bytes()[:500])
    (path / names[1]).write_bytes(b"not an image")
    return path, names


@pytest.mark.parametrize("workers", [1, 3])
def test_a_corrupt_file_ends_the_run_by_name(opened, damaged, workers):
    path, names = damaged
    with pytest.raises(UserError) as caught:
        take(opened("tf_files", path, workers=workers), 3 * FILES)
    assert any(str(path / name) in str(caught.value) for name in names)
    assert "corrupt: skip" in str(caught.value)
    assert "iterator" not in str(caught.value).removeprefix(str(path))


@pytest.mark.parametrize("workers", [1, 3])
def test_corrupt_files_are_skipped_named_and_counted(opened, maker, damaged, workers):
    path, names = damaged
    whole = [number for number in range(FILES) if number not in (3, 10)]
    wanted = expected(path, whole)
    pipeline = opened("tf_files", path, workers=workers, prefetch=0, options={"corrupt": "skip"})
    seen = prints(*take(pipeline, 2 * wanted.total() + 8))
    assert Counter(seen[: wanted.total()]) == wanted
    assert Counter(seen[wanted.total() : 2 * wanted.total()]) == wanted
    pipeline.close()
    found = [fields for kind, fields in maker.notes if kind == "finding"]
    named = {fields["evidence"]["file"] for fields in found if fields["code"] == "corrupt_image"}
    assert named == {str(path / name) for name in names}
    [summary] = [fields["evidence"] for fields in found if fields["code"] == "corrupt_images"]
    assert summary["files"] == 2
    assert summary["skipped"] >= 4


@pytest.mark.parametrize("name", ["tf_files", *RECORDS])
def test_a_set_without_any_image_is_an_error_not_a_hang(opened, tree, tmp_path, name):
    path, encoding = tmp_path / "set", "native"
    shutil.copytree(tree, path)
    for file in imagenet.read(tree).train.files:
        (path / file).write_bytes(b"nothing")
    if name in RECORDS:
        path, encoding = tmp_path / "records", "tfrecord"
        convert(tmp_path / "set", path, Settings("tfrecord", shard_samples=3))
    with pytest.raises(UserError, match=f"none of {FILES} images in a row"):
        take(opened(name, path, encoding=encoding, options={"corrupt": "skip"}), 1)


@pytest.fixture
def damaged_shards(damaged, tmp_path) -> tuple[Path, list[str]]:
    """The damaged tree as records; the converter copies encoded images without looking into them."""
    path, names = damaged
    convert(path, tmp_path / "records", Settings("tfrecord", shard_samples=3))
    return tmp_path / "records", [Path(name).stem for name in names]


@pytest.mark.parametrize("name", RECORDS)
def test_a_corrupt_record_ends_the_run_by_name(opened, damaged_shards, name):
    path, names = damaged_shards
    with pytest.raises(UserError) as caught:
        take(opened(name, path, encoding="tfrecord"), 2 * FILES)
    assert any(str(caught.value).startswith(f"{file}: ") for file in names)


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_whose_checksum_is_wrong_ends_the_run_with_what_finds_it(opened, shards, tmp_path, name):
    path = tmp_path / "damaged records"
    shutil.copytree(shards, path)
    file = min(path.glob("train-*"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    words = rf"^{path}: a shard is damaged: corrupted record at \d+; find it: harness data verify '{path}'$"
    with pytest.raises(UserError, match=words):
        take(opened(name, path, encoding="tfrecord"), 2 * FILES)


@pytest.mark.parametrize("name", RECORDS)
def test_corrupt_records_are_skipped_named_and_counted(opened, maker, damaged, damaged_shards, name):
    path, names = damaged_shards
    whole = [number for number in range(FILES) if number not in (3, 10)]
    pipeline = opened(name, path, encoding="tfrecord", prefetch=0, options={"corrupt": "skip"})
    seen = prints(*take(pipeline, 3 * len(whole)))
    for epoch in range(3):
        part = seen[epoch * len(whole) : (epoch + 1) * len(whole)]
        assert Counter(part) == expected(damaged[0], whole, whole=True)
    named = {f["evidence"]["file"] for kind, f in maker.notes if kind == "finding" and f["code"] == "corrupt_image"}
    assert named == set(names)


@pytest.mark.parametrize(("echo_at", "alike"), [("before_augment", False), ("after_augment", True)])
@pytest.mark.parametrize("name", ["tf_files", *RECORDS])
def test_echo_repeats_samples_and_counts_fresh_ones(opened, tree, shards, name, echo_at, alike):
    path, encoding = (tree, "native") if name == "tf_files" else (shards, "tfrecord")
    options = {"echo_at": echo_at, "augment": True}
    pipeline = opened(name, path, echo=3, encoding=encoding, options=options)
    batches = list(itertools.islice(pipeline.batches(), 9))
    images = np.concatenate([np.asarray(batch.data[0]) for batch in batches]).reshape(12, 3, -1)
    labels = np.concatenate([np.asarray(batch.data[1]) for batch in batches]).reshape(12, 3)
    assert [batch.samples for batch in batches] == [2, 1, 1] * 3
    assert {batch.consumed for batch in batches} == {BATCH}
    assert (labels == labels[:, :1]).all()
    assert bool((images == images[:, :1]).all()) is alike


def test_the_order_follows_the_seed(opened, tree):
    first, again, other = (
        prints(*take(opened("tf_files", tree, seed=seed, workers=workers), 20))
        for seed, workers in ((1, 1), (1, 3), (2, 1))
    )
    assert first == again != other


@pytest.mark.parametrize("name", ["tf_files", *RECORDS])
def test_occupancy_is_the_depth_of_the_filled_buffer(opened, tree, shards, name):
    path, encoding = (tree, "native") if name == "tf_files" else (shards, "tfrecord")
    pipeline = opened(name, path, encoding=encoding, prefetch=3)
    assert pipeline.occupancy() == 0
    supply = pipeline.batches()
    for _ in range(3):
        next(supply)
        assert wait_for(lambda: pipeline.occupancy() == 3)
    time.sleep(0.1)
    assert pipeline.occupancy() == 3


def test_occupancy_follows_the_buffer_as_it_fills_and_drains(maker):
    """Batches are made one for each permit: so many as were let through and not taken are in the buffer."""
    permits = threading.Semaphore(0)

    def make(number):
        assert permits.acquire(timeout=60)
        return np.zeros((BATCH, 1), np.float32), np.int64(number)

    def batches(_):
        kinds = (tf.float32, tf.int64)
        return tf.data.Dataset.counter().map(lambda n: tf.numpy_function(make, [n], kinds), num_parallel_calls=1)

    context = maker.context("resnet_imagenet", "tensorflow", pipeline="tf_files", batch_size=BATCH)
    pipeline = tf_stream.TfStream(context, batches, prefetch=4, samples=0)
    supply = pipeline.batches()
    permits.release(3)
    next(supply)
    assert wait_for(lambda: pipeline.occupancy() == 2)
    next(supply)
    assert wait_for(lambda: pipeline.occupancy() == 1)
    next(supply)
    assert pipeline.occupancy() == 0
    permits.release(2)
    assert wait_for(lambda: pipeline.occupancy() == 2)
    permits.release(100)
    pipeline.close()


def test_without_prefetch_nothing_is_made_ahead(opened, tree):
    pipeline = opened("tf_files", tree, prefetch=0)
    take(pipeline, 8)
    assert pipeline.occupancy() is None


def test_threads_of_its_own_on_this_ranks_cpus(opened, tree):
    pipeline = opened("tf_files", tree)
    take(pipeline, 1)
    assert pipeline.worker_cpus() == sorted(os.sched_getaffinity(0))
    options = pipeline._dataset.options()
    assert options.threading.private_threadpool_size == pipeline._context.threads
    assert options.experimental_optimization.inject_prefetch is False


def test_more_ranks_than_files_or_shards(opened, tree, shards):
    with pytest.raises(UserError, match="23 images cannot be shared by 24 ranks"):
        opened("tf_files", tree, rank=0, world=24)
    with pytest.raises(UserError, match="8 shards cannot be shared by 9 ranks.*--shard-samples"):
        opened("tf_records_new", shards, rank=0, world=9, encoding="tfrecord")


def test_a_data_set_of_another_encoding(opened, tree, shards):
    with pytest.raises(UserError, match="is stored as native, not tfrecord"):
        opened("tf_records_new", tree, encoding="tfrecord")
    with pytest.raises(UserError, match="as tfrecord is none"):
        opened("tf_files", shards, encoding="tfrecord")


def test_file_names_that_are_no_plain_words(opened, tree, tmp_path):
    path = tmp_path / "säts with $(blanks) 'quoted'"
    shutil.copytree(tree, path)
    assert take(opened("tf_files", path), FILES)[0].shape == (FILES, SIDE, SIDE, 3)


def test_an_iterator_that_does_not_end_holds_nothing_up(opened, tree, monkeypatch):
    """Its end is waited for a while, then left to the process's end."""
    asked = threading.Event()
    release = threading.Event()

    class Stuck:
        def __del__(self):
            asked.set()
            release.wait(300)

    monkeypatch.setattr(tf_stream, "_END_S", 0.01)
    pipeline = opened("tf_files", tree)
    pipeline._iterator = Stuck()
    pipeline.close()
    assert asked.wait(60)
    assert pipeline._iterator is None
    release.set()
