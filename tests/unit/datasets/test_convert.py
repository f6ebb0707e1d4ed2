"""Conversions, read back by the frameworks' own and by third-party readers."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import multiprocessing
import pickle
import shutil
import subprocess
import sys
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from datasets_support import request_of
from PIL import Image

from harness.datasets import imagenet, mnist
from harness.datasets.convert.run import Settings, convert
from harness.datasets.convert.tfrecord import frame
from harness.datasets.make import make
from harness.datasets.manifest import MANIFEST, Request, missing, read_listing, read_manifest
from harness.datasets.stored import LmdbImages, mapped_arrays, open_stored
from harness.datasets.verify import OK, verify
from harness.errors import UserError

REQUEST = Request(format="imagenet", origin="synthetic", counts={"train": 40, "test": 8}, options={"classes": 4})
SIDE = 32


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("source") / "synthetic-imagenet"
    make(path, REQUEST)
    return path


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("source") / "digits-mnist"
    make(path, request_of("digits:mnist"))
    return path


@pytest.fixture(scope="module")
def converted(tree, tmp_path_factory):
    """``converted(encoding)``: the tree in that encoding, in several shards, made once."""
    made: dict[str, Path] = {}

    def build(encoding: str) -> Path:
        if encoding not in made:
            made[encoding] = tmp_path_factory.mktemp(encoding) / f"set.{encoding}"
            shard_bytes = 60_000 if encoding in ("npy", "tfrecord_decoded") else 1 << 20
            convert(tree, made[encoding], Settings(encoding, side=SIDE, shard_bytes=shard_bytes))
        return made[encoding]

    return build


def truth(tree: Path, split: str) -> dict[str, tuple[int, bytes]]:
    """Stem → (label, file content) of the source."""
    files = getattr(imagenet.read(tree), split)
    return {
        Path(file).stem: (int(label), (tree / file).read_bytes())
        for file, label in zip(files.files, files.labels, strict=True)
    }


def square(content: bytes) -> np.ndarray:
    image = Image.open(io.BytesIO(content)).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return np.asarray(image)


FRAMED_BY_TENSORFLOW = "0700000000000000bbd79f116861726e657373f1690893"
ENCODINGS = ("tfrecord", "tfrecord_decoded", "lmdb", "npy", "webdataset", "jpeg")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_conversion_is_whole_verified_and_costed(converted, tree, encoding):
    path = converted(encoding)
    name, checks = verify(path)
    assert name == "synthetic:imagenet"
    assert {check.verdict for check in checks} == {OK}
    conversion = read_manifest(path).conversion
    assert (conversion.samples, conversion.skipped, conversion.resumed) == (48, 0, False)
    assert conversion.source_bytes == sum(len(c) for s in ("train", "test") for _, c in truth(tree, s).values())
    files = [p for p in path.rglob("*") if p.is_file() and "harness-" not in p.name]
    assert conversion.bytes == sum(file.stat().st_size for file in files)
    assert conversion.wall_s > 0
    assert conversion.work_s > 0
    if encoding != "jpeg":
        assert sum(conversion.shards.values()) == 48
        assert len(conversion.shards) >= 4
    assert missing(path, "synthetic:imagenet", encoding) is None
    assert f"as {encoding}, not as native" in str(missing(path, "synthetic:imagenet"))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_conversion_does_not_depend_on_workers_and_is_not_done_twice(converted, tree, tmp_path, encoding):
    first = converted(encoding)
    settings = Settings(encoding, side=SIDE, shard_bytes=read_manifest(first).request.options.get("shard_bytes", 1))
    if encoding in ("tfrecord", "lmdb"):
        convert(tree, tmp_path / "again", settings, workers=2)
        assert list(read_listing(tmp_path / "again")) == list(read_listing(first))
    else:
        before = {p: p.stat().st_mtime_ns for p in first.rglob("*")}
        settings = settings if encoding != "jpeg" else Settings(encoding, side=SIDE)
        convert(tree, first, settings)
        assert {p: p.stat().st_mtime_ns for p in first.rglob("*")} == before


def test_a_record_is_framed_as_tensorflow_frames_it():
    # bytes written by tf.io.TFRecordWriter for the record b"harness"
    assert frame(b"harness").hex() == FRAMED_BY_TENSORFLOW


def tfrecord_package_reads(file):
    """The records as the tfrecord package reads them, in a process of its own: its messages have TensorFlow's names,
    and cannot be loaded where TensorFlow has been."""
    if importlib.util.find_spec("tfrecord") is None:
        pytest.skip("needs the package tfrecord")
    program = (
        "import pickle, sys; from tfrecord.reader import tfrecord_loader; "
        "sys.stdout.buffer.write(pickle.dumps(list(tfrecord_loader(sys.argv[1], None))))"
    )
    read = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, check=True)
    return pickle.loads(read.stdout)


@pytest.mark.parametrize("split", ["train", "test"])
def test_tfrecords_are_read_by_the_tfrecord_package(converted, tree, split):
    expected, seen = truth(tree, split), {}
    for file in open_stored(converted("tfrecord"), "tfrecord").files(split):
        for record in tfrecord_package_reads(file):
            name = bytes(record["image/filename"]).decode()
            seen[name] = (int(record["image/class/label"][0]), bytes(record["image/encoded"]))
            boxes = imagenet.boxes_of(tree, next(f for f in file_names(tree, split) if Path(f).stem == name))
            if "image/object/bbox/xmin" in record:
                np.testing.assert_allclose(record["image/object/bbox/xmin"], [b.xmin for b in boxes], rtol=1e-6)
                np.testing.assert_allclose(record["image/object/bbox/ymax"], [b.ymax for b in boxes], rtol=1e-6)
            else:
                assert boxes == [imagenet.WHOLE_IMAGE]
    assert seen == expected


def file_names(tree: Path, split: str) -> tuple[str, ...]:
    return getattr(imagenet.read(tree), split).files


def test_decoded_tfrecords_hold_the_pixels(converted, tree):
    expected = truth(tree, "train")
    count = 0
    for file in open_stored(converted("tfrecord_decoded"), "tfrecord_decoded").files("train"):
        for record in tfrecord_package_reads(file):
            label, content = expected[bytes(record["image/filename"]).decode()]
            shape = [int(record[f"image/{name}"][0]) for name in ("height", "width", "channels")]
            pixels = np.frombuffer(bytes(record["image/raw"]), np.uint8).reshape(shape)
            np.testing.assert_array_equal(pixels, square(content))
            assert int(record["image/class/label"][0]) == label
            count += 1
    assert count == 40


def test_lmdb_is_read_by_number_in_any_order_and_after_a_fork(converted, tree):
    stored = open_stored(converted("lmdb"), "lmdb")
    images = LmdbImages(stored, "train")
    contents = sorted((int(labels[0]), content) for content, labels in (images[i] for i in reversed(range(40))))
    assert contents == sorted(truth(tree, "train").values())
    assert len(images) == 40
    found = {images[i][0]: images.boxes(i) for i in range(40)}
    for file in file_names(tree, "train"):
        boxes = imagenet.boxes_of(tree, file)
        expected = [] if boxes == [imagenet.WHOLE_IMAGE] else boxes
        np.testing.assert_allclose(found[(tree / file).read_bytes()], np.reshape(expected, (-1, 4)) if expected else [])
    for wrong in (-1, 40):
        with pytest.raises(IndexError):
            images[wrong]
    expected = images[7][0]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert {content for content, _ in pool.map(images.__getitem__, [7] * 8)} == {expected}
    assert images[7][0] == expected
    images.close()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(images.__getitem__, (7,))[0] == expected


@pytest.mark.skipif(shutil.which("mdb_dump") is None, reason="needs lmdb-utils")
def test_lmdb_is_read_by_the_tools_of_openldap(converted):
    for file in open_stored(converted("lmdb"), "lmdb").files("train"):
        dumped = subprocess.run(["mdb_dump", "-n", "-p", str(file)], capture_output=True, check=True).stdout
        assert b"00000000.image" in dumped


def test_numpy_shards_are_mapped_not_read(converted, tree):
    arrays = mapped_arrays(open_stored(converted("npy"), "npy"), "train")
    assert len(arrays) >= 2
    assert all(isinstance(images, np.memmap) for images, _ in arrays)
    images = np.concatenate([images for images, _ in arrays])
    labels = np.concatenate([labels for _, labels in arrays])
    assert images.shape == (40, SIDE, SIDE, 3)
    expected = sorted((label, square(content).tobytes()) for label, content in truth(tree, "train").values())
    assert sorted((int(label), image.tobytes()) for label, image in zip(labels, images, strict=True)) == expected


def test_webdataset_shards_are_read_by_webdataset_and_by_tar(converted, tree):
    webdataset = pytest.importorskip("webdataset")
    stored = open_stored(converted("webdataset"), "webdataset")
    urls = [str(file) for file in stored.files("train")]
    seen = {}
    for sample in webdataset.WebDataset(urls, shardshuffle=False, empty_check=False):
        facts = json.loads(sample["json"])
        assert facts["labels"] == [int(sample["cls"])]
        seen[facts["filename"]] = (int(sample["cls"]), sample.get("jpg") or sample["png"])
    assert seen == truth(tree, "train")
    with tarfile.open(urls[0]) as tar:
        assert {member.mtime for member in tar} == {0}
    listed = subprocess.run(["tar", "-tf", urls[0]], capture_output=True, text=True, check=True).stdout.split()
    assert len(listed) == 3 * stored.samples("train")[0]


def test_resized_jpegs_stand_in_class_directories_with_a_table(converted, tree):
    path = converted("jpeg")
    expected = truth(tree, "train")
    classes = imagenet.read(tree).classes
    with (path / "labels.csv").open(newline="") as stream:
        table = {row["file"]: int(row["labels"]) for row in csv.DictReader(stream)}
    files = {str(p.relative_to(path)) for p in path.rglob("*.jpg")}
    assert set(table) == files
    for stem, (label, content) in expected.items():
        file = f"train/{classes[label]}/{stem}.jpg"
        assert table[file] == label
        pixels = np.asarray(Image.open(path / file).convert("RGB"), int)
        assert pixels.shape == (SIDE, SIDE, 3)
        assert abs(pixels - square(content)).mean() < 8


def test_sets_in_memory_become_pngs_or_their_own_pixels(digits, tmp_path):
    dataset = mnist.read(digits)
    expected = sorted(zip(dataset.train_labels.tolist(), (i.tobytes() for i in dataset.train_images), strict=True))
    convert(digits, tmp_path / "npy", Settings("npy"))
    stored = open_stored(tmp_path / "npy", "npy")
    assert stored.shape == (28, 28, 1)
    (images, labels), *_ = mapped_arrays(stored, "train")
    assert sorted(zip(labels.tolist(), (i.tobytes() for i in images), strict=True)) == expected
    convert(digits, tmp_path / "lmdb", Settings("lmdb"))
    reader = LmdbImages(open_stored(tmp_path / "lmdb", "lmdb"), "train")
    seen = []
    for number in range(len(reader)):
        content, label = reader[number]
        seen.append((int(label[0]), np.asarray(Image.open(io.BytesIO(content))).tobytes()))
    assert sorted(seen) == expected
    reader.close()


def test_threads_that_come_to_a_shard_together_all_read_it(digits, tmp_path):
    """LMDB refuses to open a file twice in a process; each trial begins with the shard closed."""
    convert(digits, tmp_path / "lmdb", Settings("lmdb"))
    reader = LmdbImages(open_stored(tmp_path / "lmdb", "lmdb"), "train")
    threads = 8
    start = threading.Barrier(threads)

    def first(_: int) -> bytes:
        start.wait()
        return reader[0][0]

    with ThreadPoolExecutor(threads) as pool:
        for _ in range(40):
            assert len(set(pool.map(first, range(threads)))) == 1
            reader.close()


def test_shards_may_be_cut_by_number(tree, tmp_path):
    convert(tree, tmp_path / "set", Settings("tfrecord", shard_samples=16))
    assert open_stored(tmp_path / "set", "tfrecord").samples("train") == [16, 16, 8]


def test_several_labels_survive(tmp_path):
    chest = Request(format="chestxray14", origin="synthetic", counts={"train": 14, "test": 14})
    make(tmp_path / "chest", chest)
    from harness.datasets import chestxray14

    convert(tmp_path / "chest", tmp_path / "npy", Settings("npy", side=16))
    arrays = mapped_arrays(open_stored(tmp_path / "npy", "npy"), "test")
    labels = np.concatenate([labels for _, labels in arrays])
    expected = chestxray14.read(tmp_path / "chest").test.labels
    np.testing.assert_array_equal(np.sort(labels, axis=0), np.sort(expected, axis=0))
    assert arrays[0][0].shape[1:] == (16, 16, 3)


def test_a_corrupt_image_is_named_or_skipped_and_counted(tree, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(tree, copy)
    victim = copy / imagenet.read(copy).train.files[5]
    victim.write_bytes(victim.read_bytes()[:300])
    with pytest.raises(UserError, match=rf"{victim.name}: cannot be decoded"):
        convert(copy, tmp_path / "npy", Settings("npy", side=SIDE))
    assert not (tmp_path / "npy" / MANIFEST).exists()
    manifest = convert(copy, tmp_path / "skipped", Settings("npy", side=SIDE, skip_corrupt=True))
    assert (manifest.conversion.samples, manifest.conversion.skipped) == (47, 1)
    assert sum(len(labels) for _, labels in mapped_arrays(open_stored(tmp_path / "skipped", "npy"), "train")) == 39


def test_an_interrupted_conversion_goes_on(tree, converted, tmp_path, monkeypatch):
    path, calls = tmp_path / "set", []

    def interrupted(done: int, total: int) -> None:
        calls.append((done, total))
        if done == 2:
            raise KeyboardInterrupt

    settings = Settings("tfrecord", side=SIDE, shard_bytes=1 << 20)
    with pytest.raises(KeyboardInterrupt):
        convert(tree, path, settings, progress=interrupted)
    assert missing(path, "synthetic:imagenet", "tfrecord") is not None
    resumed = []
    manifest = convert(tree, path, settings, progress=lambda done, total: resumed.append(done))
    assert resumed[0] == 2
    assert manifest.conversion.resumed
    assert list(read_listing(path)) == list(read_listing(converted("tfrecord")))


@pytest.mark.parametrize(
    ("encoding", "message"), [("tfrecords", "did you mean 'tfrecord'"), ("native", "valid: tfrecord")]
)
def test_an_unknown_encoding_is_refused(tree, tmp_path, encoding, message):
    with pytest.raises(UserError, match=message):
        convert(tree, tmp_path / "x", Settings(encoding))
    assert not (tmp_path / "x").exists()


def test_what_is_converted_already_or_is_no_set_is_refused(converted, tmp_path):
    with pytest.raises(UserError, match="converted set already"):
        convert(converted("npy"), tmp_path / "x", Settings("lmdb"))
    with pytest.raises(UserError, match="no data set there"):
        convert(tmp_path, tmp_path / "x", Settings("lmdb"))
    with pytest.raises(UserError, match="stored as npy, not lmdb"):
        open_stored(converted("npy"), "lmdb")


def test_a_tree_that_nothing_vouches_for_stays_unknown(tree, tmp_path):
    copy = tmp_path / "imagenet"
    shutil.copytree(tree, copy)
    (copy / MANIFEST).unlink()
    assert imagenet.read(copy).name == "unknown:imagenet"
    manifest = convert(copy, tmp_path / "imagenet.lmdb", Settings("lmdb"))
    assert manifest.request.origin == "unknown"
    assert missing(tmp_path / "imagenet.lmdb", "imagenet", "lmdb") is None
    again = convert(copy, tmp_path / "imagenet.lmdb", Settings("lmdb"))
    assert again == manifest


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


@pytest.mark.parametrize("encoding", ["tfrecord", "lmdb", "npy", "webdataset"])
@pytest.mark.parametrize(("change", "words"), [(Path.unlink, "cannot be read: No such file"), (cut_off, "bytes where")])
def test_a_missing_or_cut_shard_is_named_before_a_library_reads_it(converted, tmp_path, encoding, change, words):
    """LMDB would end the process with a bus error, and TensorFlow names no file."""
    path = tmp_path / "set"
    shutil.copytree(converted(encoding), path)
    file = min(path.glob("train-*"))
    change(file)
    with pytest.raises(UserError, match=rf"^{file}: .*{words}.*; harness data convert .* --force$"):
        open_stored(path, encoding)
