"""Made sets: deterministic, whole or not there, honest about what they are."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from datasets_support import COUNTS, request_of

from harness.datasets import cifar10, manifest, mnist
from harness.datasets.make import is_made, make
from harness.datasets.manifest import MANIFEST, PARTIAL
from harness.errors import UserError

NAMES = ("digits:mnist", "synthetic:mnist", "photos:cifar10", "synthetic:cifar10")
READERS = {"mnist": mnist.read, "cifar10": cifar10.read}


def read(name: str, path: Path):
    return READERS[name.split(":")[1]](path)


@pytest.mark.parametrize("name", NAMES)
def test_a_made_set_reads_back_with_its_counts_classes_and_true_name(made, name):
    dataset = read(name, made(name))
    side, channels = (28, 1) if "mnist" in name else (32, 3)
    assert dataset.name == name
    assert dataset.origin == name.split(":")[0]
    assert dataset.verified
    assert dataset.train_images.shape == (COUNTS["train"], side, side, channels)
    assert dataset.test_images.shape == (COUNTS["test"], side, side, channels)
    assert dataset.train_images.dtype == dataset.train_labels.dtype == np.uint8
    assert set(dataset.train_labels.tolist()) == set(range(10))
    assert dataset.train_images.std() > 20


@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_give_equal_files_and_another_seed_others(tmp_path, name):
    first = make(tmp_path / "a", request_of(name))
    again = make(tmp_path / "b", request_of(name))
    other = make(tmp_path / "c", request_of(name).model_copy(update={"seed": 1}))
    assert first.files == again.files
    assert first.files != other.files


def test_mnist_files_are_gzip_idx_with_the_published_names_and_no_time_in_them(made):
    path = made("synthetic:mnist")
    names = {"train-images-idx3-ubyte.gz": (3, 203), "train-labels-idx1-ubyte.gz": (1, 203)}
    names |= {"t10k-images-idx3-ubyte.gz": (3, 41), "t10k-labels-idx1-ubyte.gz": (1, 41)}
    assert {p.name for p in path.iterdir()} == {*names, MANIFEST}
    for name, (dimensions, count) in names.items():
        packed = (path / name).read_bytes()
        assert packed[4:8] == b"\0\0\0\0"
        content = gzip.decompress(packed)
        assert struct.unpack(">II", content[:8]) == (0x800 + dimensions, count)


@pytest.mark.parametrize(("encoding", "kind"), [("latin1", str), ("bytes", bytes)])
def test_cifar_batches_unpickle_as_torchvision_and_keras_unpickle_the_real_ones(made, encoding, kind):
    folder = made("photos:cifar10") / "cifar-10-batches-py"
    key = (lambda text: text) if kind is str else str.encode
    labels = []
    for number in range(1, 6):
        batch = pickle.loads((folder / f"data_batch_{number}").read_bytes(), encoding=encoding)
        assert batch[key("data")].dtype == np.uint8
        assert batch[key("data")].shape == (len(batch[key("labels")]), 3072)
        assert batch[key("batch_label")] == key(f"training batch {number} of 5")
        assert type(batch[key("labels")][0]) is int
        labels += batch[key("labels")]
    assert len(labels) == COUNTS["train"]
    meta = pickle.loads((folder / "batches.meta").read_bytes(), encoding=encoding)
    assert meta[key("label_names")][1] == key("cat")


def test_the_binary_layout_holds_the_same_images_as_the_python_one(made):
    python, binary = (cifar10.read(made("synthetic:cifar10", layout=layout)) for layout in ("python", "binary"))
    np.testing.assert_array_equal(python.train_images, binary.train_images)
    np.testing.assert_array_equal(python.test_labels, binary.test_labels)


def test_binary_records_are_a_label_and_three_planes(made):
    path = made("synthetic:cifar10", layout="binary")
    dataset = cifar10.read(path)
    record = (path / "cifar-10-batches-bin" / "data_batch_1.bin").read_bytes()[:3073]
    assert record[0] == dataset.train_labels[0]
    assert list(record[1:33]) == dataset.train_images[0, 0, :, 0].tolist()
    assert list(record[1025:1057]) == dataset.train_images[0, 0, :, 1].tolist()


def test_no_digit_is_in_both_splits(made):
    from sklearn.datasets import load_digits

    from harness.datasets.origins import digits

    train, test = digits.make(0, 1438, 359)
    originals = {hashlib.sha256(image.tobytes()).digest() for image in load_digits().images}
    images = {image.tobytes() for image in train.images} & {image.tobytes() for image in test.images}
    assert len(originals) == 1797
    assert not images
    assert len(train.labels) + len(test.labels) == 1797


def test_no_photograph_tile_is_in_both_splits():
    from PIL import Image

    from harness.datasets.origins import photos

    # every pixel of this picture is unique, so a pixel in both splits would be seen
    height = width = 240
    unique = np.arange(height * width).reshape(height, width)
    picture = np.stack([unique % 251, unique // 251 % 251, unique // 63001 + unique % 7 * 36], axis=-1)
    train, test = photos._tiles(Image.fromarray(picture.astype(np.uint8)), seed=3)
    pixels = [{tuple(p) for tile in tiles for p in np.asarray(tile).reshape(-1, 3)} for tiles in (train, test)]
    assert len(train) == 30
    assert len(test) == 6
    assert not pixels[0] & pixels[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_nearest_class_mean_beats_chance_on_the_test_split(tmp_path, name):
    request = request_of(name).model_copy(update={"counts": {"train": 1000, "test": 300}})
    make(tmp_path / "set", request)
    dataset = read(name, tmp_path / "set")
    train = dataset.train_images.reshape(1000, -1).astype(float)
    means = np.stack([train[dataset.train_labels == label].mean(0) for label in range(10)])
    test = dataset.test_images.reshape(300, -1).astype(float)
    nearest = ((test[:, None] - means[None]) ** 2).sum(-1).argmin(1)
    assert (nearest == dataset.test_labels).mean() > 0.25


def test_making_again_leaves_the_files_alone(made):
    path = made("synthetic:mnist")
    before = {p.name: p.stat().st_mtime_ns for p in path.iterdir()}
    make(path, request_of("synthetic:mnist"))
    assert {p.name: p.stat().st_mtime_ns for p in path.iterdir()} == before


def test_a_half_made_set_is_no_set_and_is_completed(tmp_path, monkeypatch):
    path = tmp_path / "set"
    request = request_of("synthetic:mnist")
    with monkeypatch.context() as patch:
        patch.setattr("harness.datasets.lifecycle.file_facts", lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            make(path, request)
    assert (path / PARTIAL).exists()
    assert is_made(path, request) is None
    assert "half-made" in str(manifest.missing(path, "synthetic:mnist"))
    make(path, request)
    assert manifest.missing(path, "synthetic:mnist") is None
    assert not (path / PARTIAL).exists()


def test_another_set_and_foreign_files_are_never_overwritten(made, tmp_path):
    path = made("synthetic:mnist")
    with pytest.raises(UserError, match="already holds synthetic:mnist"):
        make(path, request_of("digits:mnist"))
    foreign = tmp_path / "mine"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("x")
    for force in (False, True):
        with pytest.raises(UserError, match="thesis.tex"):
            make(foreign, request_of("digits:mnist"), force=force)


def test_force_replaces_a_made_set_and_its_files(made):
    path = made("synthetic:cifar10", layout="binary")
    make(path, request_of("photos:cifar10"), force=True)
    assert not (path / "cifar-10-batches-bin" / "data_batch_1.bin").exists()
    assert cifar10.read(path).name == "photos:cifar10"


def test_force_replaces_a_set_whose_manifest_is_damaged(made):
    path = made("synthetic:mnist")
    (path / MANIFEST).write_text("{")
    assert "damaged" in str(manifest.missing(path, "synthetic:mnist"))
    make(path, request_of("synthetic:mnist"), force=True)
    assert mnist.read(path).verified


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({"origin": "digts"}, "did you mean 'digits'"),
        ({"origin": "photos"}, "valid: digits, synthetic"),
        ({"counts": {"train": 5, "test": 10}}, "--train 5"),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_is_written(tmp_path, update, message):
    with pytest.raises(UserError, match=message):
        make(tmp_path / "set", request_of("digits:mnist").model_copy(update=update))
    assert not (tmp_path / "set").exists()


def test_the_manifest_records_checksums_and_makers(made):
    path = made("digits:mnist")
    record = json.loads((path / MANIFEST).read_text())
    assert record["request"] == {
        "format": "mnist",
        "origin": "digits",
        "seed": 0,
        "counts": {"train": 203, "test": 41},
        "options": {},
    }
    for name, facts in record["files"].items():
        content = (path / name).read_bytes()
        assert facts["bytes"] == len(content)
        assert facts["md5"] == hashlib.md5(content).hexdigest()
        assert facts["sha256"] == hashlib.sha256(content).hexdigest()
    assert record["made_with"].keys() >= {"numpy", "scikit-learn"}
