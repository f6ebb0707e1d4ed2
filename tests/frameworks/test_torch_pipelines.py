"""Torch's pipelines of images: each sample once per epoch over all ranks, echo, boxes, corrupt images, buffers."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image
from sites.processes import wait_for

pytest.importorskip("torch")

from harness import catalog
from harness.datasets.convert.run import Settings, convert
from harness.datasets.stored import open_stored
from harness.errors import UserError
from harness.pipelines.assembly import Part
from harness.pipelines.torch_fast import Recycled, resize
from harness.pipelines.torch_loader import mirrored
from harness.pipelines.torch_webdataset import TarSupply

pytestmark = pytest.mark.framework
SIDE = 32
BATCH = 4
SAMPLES = 23
#: pipeline → the encoding it is given here
SHUFFLED = {"torch_files": "native", "torch_lmdb": "lmdb", "torch_fast": "native"}
ENCODINGS = SHUFFLED | {"torch_memory": "npy", "torch_webdataset": "webdataset"}
EVERY = [*ENCODINGS.items(), ("torch_files", "jpeg"), ("torch_fast", "jpeg"), ("torch_fast", "lmdb")]


def colour(number: int) -> tuple[int, int, int]:
    return 11 * number, 255 - 11 * number, 90


def paint(file: Path, number: int, size: tuple[int, int] = (48, 40)) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour(number)).save(file, "JPEG", quality=95)


@pytest.fixture(scope="module")
def sets(tmp_path_factory) -> dict[str, Path]:
    """23 images, each the only one of its class and of its colour, in every encoding; tar shards of two."""
    root = tmp_path_factory.mktemp("sets")
    for number in range(SAMPLES):
        folder = f"{number + 1:03d}.class-{number}"
        paint(root / "native/256_ObjectCategories" / folder / f"{number + 1:03d}_0001.jpg", number, (48, 40 + number))
    for encoding in ("lmdb", "npy", "webdataset", "jpeg"):
        convert(root / "native", root / encoding, Settings(encoding, side=SIDE, shard_samples=2))
    return {path.name: path for path in root.iterdir()}


@pytest.fixture
def opened(maker):
    """Opens pipelines as the runtime does; they are closed, twice, whatever happens."""
    pipelines = []

    def open_one(name, path, *, rank=0, world=1, options=None, **axes):
        axes = {"batch_size": BATCH, "workers": 2, "dataset": "caltech256"} | axes
        options = {"image_size": SIDE} | (options or {})
        context = maker.context(
            "resnet_imagenet", "torch", rank=rank, world=world, data_path=path, pipeline=name, options=options, **axes
        )
        pipelines.append(catalog.load(catalog.PIPELINES[name].frameworks["torch"])(context))
        return pipelines[-1]

    yield open_one
    for pipeline in pipelines:
        pipeline.close()
        pipeline.close()


def take(pipeline, batches):
    return list(itertools.islice(pipeline.batches(), batches))


def labels_of(batches):
    return np.concatenate([np.asarray(batch.data[1]) for batch in batches])


def images_of(batches):
    """``(n, h, w, c)``"""
    return np.concatenate([batch.data[0].permute(0, 2, 3, 1).numpy() for batch in batches])


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize(("name", "encoding"), EVERY)
def test_batches_have_the_form_of_the_contract_and_each_image_its_label(opened, sets, name, encoding, workers):
    batches = take(opened(name, sets[encoding], encoding=encoding, workers=workers), 7)
    for batch in batches:
        images, labels = batch.data
        assert (tuple(images.shape), str(images.dtype)) == ((BATCH, 3, SIDE, SIDE), "torch.uint8")
        assert (tuple(labels.shape), str(labels.dtype)) == ((BATCH,), "torch.int64")
        assert (batch.samples, batch.consumed) == (BATCH, BATCH)
    for image, label in zip(images_of(batches), labels_of(batches), strict=True):
        np.testing.assert_allclose(image.mean((0, 1)), colour(int(label)), atol=4)
        assert image.std((0, 1)).max() < 2


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize(("name", "encoding"), SHUFFLED.items())
def test_every_epoch_holds_each_image_once_over_all_ranks(opened, sets, name, encoding, world, workers):
    """23 images over 1, 2 and 3 ranks in batches of 4: nothing divides anything. Two epochs, laid out by position."""
    count = -(-2 * SAMPLES // (BATCH * world))
    ranks = [
        opened(name, sets[encoding], encoding=encoding, rank=r, world=world, workers=workers) for r in range(world)
    ]
    laid = np.stack([labels_of(take(pipeline, count)) for pipeline in ranks], axis=1).reshape(-1)
    assert sorted(laid[:SAMPLES]) == list(range(SAMPLES))
    assert sorted(laid[SAMPLES : 2 * SAMPLES]) == list(range(SAMPLES))
    assert list(laid[:SAMPLES]) != list(laid[SAMPLES : 2 * SAMPLES])


@pytest.mark.parametrize("name", SHUFFLED)
def test_batches_do_not_depend_on_the_number_of_workers(opened, sets, name):
    encoding = SHUFFLED[name]
    options = {"augment": True}
    one, three = (take(opened(name, sets[encoding], encoding=encoding, workers=w, options=options), 8) for w in (0, 3))
    np.testing.assert_array_equal(labels_of(one), labels_of(three))
    np.testing.assert_array_equal(images_of(one), images_of(three))


def helpers() -> set[object]:
    """Child processes, by their ids, and threads: those of other tests may still be ending."""
    return {child.pid for child in psutil.Process().children()} | set(threading.enumerate())


@pytest.mark.parametrize("name", ["torch_files", "torch_lmdb", "torch_memory"])
def test_workers_that_do_not_persist_are_others_in_each_epoch_and_the_batches_the_same(opened, sets, name):
    """An epoch of 23 images is 6 batches of 4."""
    lasting = opened(name, sets[ENCODINGS[name]], encoding=ENCODINGS[name], workers=2)
    expected = take(lasting, 14)
    lasting.close()
    options = {"persistent_workers": False}
    changing = opened(name, sets[ENCODINGS[name]], encoding=ENCODINGS[name], workers=2, options=options)
    supply = changing.batches()
    batches, workers = [], []
    for _ in range(14):
        batches.append(next(supply))
        workers.append({worker.pid for worker in changing._loader._iterator._workers})
    np.testing.assert_array_equal(labels_of(batches), labels_of(expected))
    np.testing.assert_array_equal(images_of(batches), images_of(expected))
    assert workers[0] != workers[6]
    assert not workers[0] & workers[6]
    assert workers[6] == workers[10]
    assert not workers[6] & workers[12]


def test_an_epoch_too_small_for_a_batch_is_an_error_where_each_starts_anew(opened, tmp_path):
    file = tmp_path / "256_ObjectCategories/001.c/001_0001.jpg"
    paint(file, 1)
    file.with_name("001_0002.jpg").write_bytes(b"")
    options = {"persistent_workers": False, "corrupt": "skip"}
    with pytest.raises(UserError, match="does not fill a batch"):
        take(opened("torch_files", tmp_path, workers=0, batch_size=2, options=options), 1)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("world", [1, 2, 3])
def test_prepared_images_are_shared_by_ranks_and_each_epoch_holds_a_ranks_part(opened, sets, world, workers):
    parts = []
    for rank in range(world):
        pipeline = opened("torch_memory", sets["npy"], encoding="npy", rank=rank, world=world, workers=workers)
        own = len(range(rank, SAMPLES, world))
        labels = labels_of(take(pipeline, -(-2 * own // BATCH)))
        assert sorted(labels[:own]) == sorted(labels[own : 2 * own])
        parts += list(labels[:own])
    assert sorted(parts) == list(range(SAMPLES))


@pytest.mark.parametrize("world", [1, 2, 3])
def test_tar_shards_are_shared_and_a_rank_finishes_an_epoch_before_the_next(opened, sets, world):
    """12 shards, 12, 6 or 4 for each rank; one of them has one sample, so that ranks' epochs differ in length."""
    stored = open_stored(sets["webdataset"], "webdataset")
    counts = dict(zip(stored.files("train"), stored.samples("train"), strict=True))
    laid = []
    for rank in range(world):
        supply = TarSupply(tuple(counts), None, None, rank, world, 0, 10)
        mine = sum(counts[shard] for epoch, shard in itertools.islice(supply.own(Part()), 12 // world) if epoch == 0)
        name = "torch_webdataset"
        pipeline = opened(name, sets["webdataset"], encoding="webdataset", rank=rank, world=world, workers=1)
        laid += list(labels_of(take(pipeline, -(-mine // BATCH)))[:mine])
    assert sorted(laid) == list(range(SAMPLES))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("world", [1, 2, 5])
def test_each_tar_shard_is_read_by_one_worker_of_one_rank_per_epoch(world, workers):
    shards = tuple(Path(f"/nowhere/{number}.tar") for number in range(7))
    readers = world * workers
    read = Counter()
    for rank, worker in itertools.product(range(world), range(workers)):
        supply = TarSupply(shards, None, None, rank, world, 5, 10)
        read.update(itertools.islice(supply.own(Part(worker, workers)), 4 * 7))
    whole = [epoch for epoch in range(4 * readers) if all(read[(epoch, shard)] for shard in shards)]
    assert len(whole) >= 3 * readers
    assert max(read.values()) == 1


def test_tar_samples_of_one_worker_come_once_an_epoch_in_changing_order(opened, sets):
    pipeline = opened("torch_webdataset", sets["webdataset"], encoding="webdataset", workers=0)
    labels = list(labels_of(take(pipeline, 12)))
    assert sorted(labels[:SAMPLES]) == sorted(labels[SAMPLES : 2 * SAMPLES]) == list(range(SAMPLES))
    assert labels[:SAMPLES] != labels[SAMPLES : 2 * SAMPLES]


@pytest.mark.parametrize("anew", [True, False])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("name", "encoding"), ENCODINGS.items())
def test_echo_repeats_each_image_and_counts_the_fresh_ones(opened, sets, name, encoding, workers, anew):
    """Echo 3 in batches of 4: copies reach from one batch into the next."""
    options = {"echo_at": "before_augment" if anew else "after_augment"}
    batches = take(opened(name, sets[encoding], encoding=encoding, workers=workers, echo=3, options=options), 12)
    assert all(batch.consumed == BATCH for batch in batches)
    for worker in range(max(workers, 1)):
        own = batches[worker :: max(workers, 1)]
        labels = labels_of(own)[: 3 * (len(own) * BATCH // 3)]
        assert all(len(set(labels[at : at + 3])) == 1 for at in range(0, len(labels), 3))
        fresh = np.cumsum([batch.samples for batch in own])
        assert list(fresh) == [-(-BATCH * (n + 1) // 3) for n in range(len(own))]


def noisy(path: Path) -> Path:
    """One image of noise, so that two crops of it differ."""
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), np.uint8)
    file = path / "256_ObjectCategories/001.noise/001_0001.jpg"
    file.parent.mkdir(parents=True)
    Image.fromarray(noise).save(file, quality=90)
    return path


@pytest.mark.parametrize("name", ["torch_files", "torch_fast"])
def test_echoed_copies_are_augmented_anew_or_alike(opened, tmp_path, name):
    path = noisy(tmp_path)
    for at, kinds in (("before_augment", 4), ("after_augment", 1)):
        options = {"augment": True, "echo_at": at}
        [batch] = take(opened(name, path, workers=0, echo=4, options=options), 1)
        assert len({image.tobytes() for image in images_of([batch])}) == kinds
        assert batch.samples == 1


def test_augmented_images_are_crops_of_seven_eighths_half_of_them_mirrored(opened, tmp_path):
    """A picture whose left half is black: a crop moves the border by 4 at most, a mirror turns it round."""
    picture = np.zeros((64, 64, 3), np.uint8)
    picture[:, 32:] = 255
    file = tmp_path / "256_ObjectCategories/001.half/001_0001.png"
    file.parent.mkdir(parents=True)
    Image.fromarray(picture).save(file)
    file.rename(file.with_suffix(".jpg"))
    images = images_of(take(opened("torch_files", tmp_path, workers=0, options={"augment": True}), 16))
    bright = images.mean((1, 3)) > 127
    mirrored = bright[:, 0]
    assert 16 < mirrored.sum() < 48
    borders = np.where(mirrored, bright.sum(1), SIDE - bright.sum(1))
    assert {int(border) for border in borders} <= set(range(13, 20))
    assert len(set(borders)) > 2


@pytest.fixture
def damaged(tmp_path) -> Path:
    """Nine images of which number 3 is cut off and number 5 is text."""
    files = [tmp_path / f"256_ObjectCategories/{n + 1:03d}.c/{n + 1:03d}_0001.jpg" for n in range(9)]
    for number, file in enumerate(files):
        paint(file, number)
    files[3].write_bytes(files[3].read_bytes()[:300])
    files[5].write_text("no image")
    return tmp_path


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", ["torch_files", "torch_fast"])
def test_a_corrupt_image_ends_the_run_and_is_named(opened, damaged, name, workers):
    with pytest.raises(UserError, match=r"00[46]_0001\.jpg: cannot be decoded: .*corrupt: skip") as caught:
        take(opened(name, damaged, workers=workers), 9)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", ["torch_files", "torch_fast"])
def test_corrupt_images_are_skipped_named_and_counted(opened, maker, damaged, name, workers):
    pipeline = opened(name, damaged, workers=workers, options={"corrupt": "skip"})
    labels = labels_of(take(pipeline, 21))
    pipeline.close()
    assert set(labels) == {0, 1, 2, 4, 6, 7, 8}
    assert all(9 <= count <= 15 for count in Counter(labels).values())
    named = [facts["evidence"] for _, facts in maker.notes if facts.get("code") == "corrupt_image"]
    assert sorted(Path(found["file"]).name for found in named) == ["004_0001.jpg", "006_0001.jpg"]
    assert all("cannot be decoded" in found["reason"] for found in named)
    [total] = [facts["evidence"] for _, facts in maker.notes if facts.get("code") == "corrupt_images"]
    assert total["files"] == 2
    assert total["skipped"] >= 2 * (84 // 7 - 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_nothing_but_corrupt_images_is_an_error_not_an_endless_search(opened, tmp_path, workers):
    file = tmp_path / "256_ObjectCategories/001.c/001_0001.jpg"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")
    with pytest.raises(UserError, match="none of .* images in a row could be read or decoded"):
        take(opened("torch_files", tmp_path, workers=workers, options={"corrupt": "skip"}), 1)


@pytest.fixture
def boxed(tmp_path) -> Path:
    """ImageNet's tree: image 0 without annotation, 1 with two boxes, 2 with one; each box of its own colour."""
    data = tmp_path / "ILSVRC/Data/CLS-LOC/train/n00000001"
    notes = tmp_path / "ILSVRC/Annotations/CLS-LOC/train/n00000001"
    data.mkdir(parents=True)
    notes.mkdir(parents=True)
    places = {0: [], 1: [(0, 0, 31, 31), (32, 32, 63, 63)], 2: [(0, 32, 31, 63)]}
    for number, boxes in places.items():
        picture = np.full((64, 64, 3), 20, np.uint8)
        for at, (x1, y1, x2, y2) in enumerate(boxes):
            picture[y1 : y2 + 1, x1 : x2 + 1] = 100 * number + 50 * at
        Image.fromarray(picture).save(data / f"n00000001_{number}.JPEG", "JPEG", quality=95)
        if boxes:
            objects = "".join(
                f"<object><bndbox><xmin>{x1}</xmin><ymin>{y1}</ymin><xmax>{x2}</xmax><ymax>{y2}</ymax></bndbox></object>"
                for x1, y1, x2, y2 in boxes
            )
            size = "<size><width>64</width><height>64</height></size>"
            (notes / f"n00000001_{number}.xml").write_text(f"<annotation>{size}{objects}</annotation>")
    return tmp_path


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("name", "encoding"),
    [("torch_files", "native"), ("torch_fast", "native"), ("torch_lmdb", "lmdb"), ("torch_fast", "lmdb")],
)
def test_one_crop_for_each_box(opened, boxed, name, encoding, workers):
    path, options = boxed, {"box_crops": True}
    if encoding == "lmdb":
        path = boxed / "converted.lmdb"
        (boxed / "ILSVRC/Data/CLS-LOC/val").mkdir()
        convert(boxed, path, Settings("lmdb"))
    batches = take(opened(name, path, dataset="imagenet", encoding=encoding, workers=workers, options=options), 8)
    shades = Counter(round(float(np.median(image)) / 10) * 10 for image in images_of(batches))
    assert set(shades) == {20, 100, 150, 200}
    assert all(6 <= count <= 10 for count in shades.values())


def test_boxes_are_asked_for_where_there_are_none(opened, sets):
    with pytest.raises(UserError, match="caltech256 as native has no boxes"):
        opened("torch_files", sets["native"], options={"box_crops": True})


def test_findings_of_xrays_are_flags(opened, tmp_path):
    """Grey PNGs of which each has labels of its own."""
    (tmp_path / "images").mkdir()
    rows = ["Image Index,Finding Labels", "a.png,No Finding", "b.png,Mass|Hernia"]
    (tmp_path / "Data_Entry_2017.csv").write_text("\n".join(rows))
    for name, shade in (("a", 40), ("b", 200)):
        Image.new("L", (100, 100), shade).save(tmp_path / f"images/{name}.png")
    for name in ("torch_files", "torch_fast"):
        [batch] = take(opened(name, tmp_path, dataset="chestxray14", workers=1), 1)
        images, labels = batch.data
        assert (tuple(labels.shape), str(labels.dtype)) == ((BATCH, 14), "torch.float32")
        for image, flags in zip(images, labels, strict=True):
            assert int(flags.sum()) == (2 if int(image.float().mean()) == 200 else 0)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("cut", [False, True])
def test_torch_fast_resizes_as_pillow_does_and_leaves_channels_last(channels, cut):
    """A batch takes rows of bytes as they are; channels first would be turned round pixel by pixel."""
    pixels = np.random.default_rng(2).integers(0, 256, (90, 120, channels), np.uint8)
    if cut:
        pixels = pixels[5:75, 10:110]
    found = resize(pixels, 40, 56)
    picture = Image.fromarray(pixels if channels == 3 else pixels[..., 0])
    expected = np.asarray(picture.resize((56, 40), Image.Resampling.BILINEAR)).reshape(40, 56, channels)
    assert np.abs(found.astype(int) - expected).max() <= 1
    assert found.flags.c_contiguous


@pytest.mark.parametrize("shape", [(1, 5, 3), (224, 224, 3), (97, 400, 1), (2, 20000, 3)])
def test_mirrored_images_are_those_of_numpy(shape):
    image = np.random.default_rng(4).integers(0, 256, shape, np.uint8)
    np.testing.assert_array_equal(mirrored(image[:, 1:]), image[:, 1:][:, ::-1])


def test_memory_of_a_batch_is_used_again_only_when_nobody_holds_it():
    import torch

    memory = Recycled()
    held = torch.from_numpy(memory((2, 4, 4, 3))).permute(0, 3, 1, 2)
    part = memory((2, 4, 4, 3))[:0]
    third = memory((2, 4, 4, 3)).ctypes.data
    assert len({held.data_ptr(), part.base.ctypes.data, third}) == 3
    assert memory((2, 4, 4, 3)).ctypes.data == third
    freed = held.data_ptr()
    del held
    assert memory((2, 4, 4, 3)).ctypes.data == freed
    assert memory((1, 4, 4, 3)).ctypes.data not in (freed, third)


def test_batches_that_are_kept_keep_their_images(opened, sets):
    kept = take(opened("torch_fast", sets["native"], workers=2), 12)
    for image, label in zip(images_of(kept), labels_of(kept), strict=True):
        np.testing.assert_allclose(image.mean((0, 1)), colour(int(label)), atol=4)


COUNT_THREADS = """
import os, threading
import numpy as np, torch
from harness.pipelines.torch_fast import Recycled, resize
from harness.pipelines.torch_loader import mirrored
from harness.pipelines.torch_loader import mirrored
torch.set_num_threads(4)
image = np.zeros((500, 400, 3), np.uint8)
def work():
    print(mirrored(resize(image, 256, 256)).shape, len(os.listdir("/proc/self/task")))
worker = threading.Thread(target=work)
before = len(os.listdir("/proc/self/task"))
worker.start()
worker.join()
print(before)
"""


def test_a_loader_thread_starts_no_openmp_threads_of_its_own():
    environment = os.environ | {"OMP_NUM_THREADS": "4"}
    command = [sys.executable, "-c", COUNT_THREADS]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    during, before = said.split("\n")[:2]
    assert during == f"(256, 256, 3) {int(before) + 1}"


@pytest.mark.parametrize("name", ["torch_files", "torch_fast"])
def test_occupancy_counts_ready_batches_up_to_the_buffers_depth(opened, sets, name):
    pipeline = opened(name, sets["native"], workers=2, prefetch=3)
    assert wait_for(lambda: pipeline.occupancy() == 6)
    next(pipeline.batches())
    assert pipeline.worker_cpus() == sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize("name", ["torch_files", "torch_fast"])
def test_without_workers_nothing_is_buffered(opened, sets, name):
    pipeline = opened(name, sets["native"], workers=0)
    take(pipeline, 2)
    assert (pipeline.occupancy(), pipeline.worker_cpus()) == (None, None)


@pytest.mark.parametrize("name", ENCODINGS)
def test_closing_ends_workers(opened, sets, name):
    before = helpers()
    pipeline = opened(name, sets[ENCODINGS[name]], encoding=ENCODINGS[name], workers=2)
    take(pipeline, 1)
    assert len(helpers() - before) >= 2
    pipeline.close()
    assert wait_for(lambda: not helpers() - before)


@pytest.mark.parametrize("name", ENCODINGS)
def test_no_buffer_with_workers_is_refused(opened, sets, name):
    with pytest.raises(UserError, match="prefetch: 0 with workers"):
        opened(name, sets[ENCODINGS[name]], encoding=ENCODINGS[name], workers=1, prefetch=0)


@pytest.mark.parametrize("name", ["torch_lmdb", "torch_webdataset", "torch_memory"])
def test_another_form_of_the_data_is_an_error_that_says_so(opened, sets, name):
    with pytest.raises(UserError, match=f"stored as jpeg, not {ENCODINGS[name]}"):
        opened(name, sets["jpeg"], encoding=ENCODINGS[name])


def test_more_ranks_than_images_or_shards_are_refused(opened, sets):
    for name, encoding in (("torch_files", "native"), ("torch_lmdb", "lmdb"), ("torch_webdataset", "webdataset")):
        with pytest.raises(UserError, match="cannot be shared by 24 ranks"):
            opened(name, sets[encoding], encoding=encoding, world=24)


def test_more_readers_than_shards_is_a_finding(opened, maker, sets):
    opened("torch_webdataset", sets["webdataset"], encoding="webdataset", world=6, workers=3)
    [found] = [facts for _, facts in maker.notes if facts.get("code") == "few_shards"]
    assert found["evidence"] == {"shards": 12, "readers": 18}


def test_prepared_images_of_another_size_are_resized_and_said_so(opened, maker, sets):
    [batch] = take(opened("torch_memory", sets["npy"], encoding="npy", options={"image_size": 40}), 1)
    assert tuple(batch.data[0].shape) == (BATCH, 3, 40, 40)
    [found] = [facts for _, facts in maker.notes if facts.get("code") == "resized_again"]
    assert found["evidence"] == {"stored": [32, 32], "wanted": [40, 40]}


def test_a_synthetic_batch_is_made_once(opened, maker):
    first, second = take(opened("synthetic", None, workers=0), 2)
    assert first.data[0] is second.data[0]
    assert tuple(first.data[0].shape) == (BATCH, 3, SIDE, SIDE)
    assert int(first.data[1].max()) < 257
    assert [facts["origin"] for kind, facts in maker.notes if kind == "data"] == ["none"]
