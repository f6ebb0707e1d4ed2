"""Readers: real sets recognised, damaged files named, nothing executed."""

from __future__ import annotations

import gzip
import os
import pickle
import random
from pathlib import Path

import numpy as np
import pytest

from harness.datasets import cifar10, manifest, mnist, pickles, published
from harness.datasets.manifest import MANIFEST, Digest
from harness.errors import UserError


def forget_manifest(path: Path) -> None:
    (path / MANIFEST).unlink()


def test_files_without_manifest_are_of_unknown_origin_never_real(made):
    path = made("synthetic:mnist")
    forget_manifest(path)
    dataset = mnist.read(path)
    assert (dataset.origin, dataset.verified, dataset.name) == ("unknown", False, "unknown:mnist")


def test_files_with_published_checksums_are_real(made, monkeypatch):
    path = made("synthetic:mnist")
    forget_manifest(path)
    sums = {name: Digest((path / name).read_bytes()).md5 for name in published.MNIST_FILES}
    monkeypatch.setattr(published, "MD5", sums)
    dataset = mnist.read(path)
    assert (dataset.origin, dataset.verified, dataset.name) == ("real", True, "mnist")
    monkeypatch.setitem(sums, published.MNIST_TEST_LABELS, "0" * 32)
    assert mnist.read(path).origin == "unknown"


def test_a_file_that_differs_from_its_manifest_is_refused_by_name(made):
    path = made("synthetic:cifar10")
    batch = path / "cifar-10-batches-py" / "data_batch_3"
    content = bytearray(batch.read_bytes())
    content[-500] ^= 1
    batch.write_bytes(content)
    with pytest.raises(UserError, match=r"data_batch_3: differs .* --origin synthetic"):
        cifar10.read(path)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("train-images-idx3-ubyte.gz", lambda c: c[:-20], "damaged or cut short"),
        ("train-images-idx3-ubyte.gz", lambda c: b"", "no IDX file"),
        ("train-images-idx3-ubyte.gz", lambda c: b"<html>404</html>", "starts with 3c68746d"),
        ("t10k-labels-idx1-ubyte.gz", lambda c: gzip.compress(gzip.decompress(c)[:-3]), "38 bytes of data"),
        ("t10k-labels-idx1-ubyte.gz", lambda c: gzip.compress(b"\0\0\x08\x01\0\0\0\x02\1\2"), "2 labels for 41"),
        ("t10k-labels-idx1-ubyte.gz", lambda c: gzip.compress(gzip.decompress(c)[:-1] + b"\x0a"), "label 10"),
    ],
)
def test_damaged_mnist_files_are_named(made, file, change, message):
    path = made("synthetic:mnist")
    forget_manifest(path)
    (path / file).write_bytes(change((path / file).read_bytes()))
    with pytest.raises(UserError, match=message) as caught:
        mnist.read(path)
    assert file in str(caught.value)


def test_plain_idx_files_and_keras_npz_are_read_too(made):
    path = made("digits:mnist")
    forget_manifest(path)
    dataset = mnist.read(path)
    for name in published.MNIST_FILES:
        (path / name.removesuffix(".gz")).write_bytes(gzip.decompress((path / name).read_bytes()))
        (path / name).unlink()
    np.testing.assert_array_equal(mnist.read(path).train_images, dataset.train_images)
    for name in published.MNIST_FILES:
        (path / name.removesuffix(".gz")).unlink()
    np.savez(
        path / "mnist.npz",
        x_train=dataset.train_images[..., 0],
        y_train=dataset.train_labels,
        x_test=dataset.test_images[..., 0],
        y_test=dataset.test_labels.astype(np.int64),
    )
    from_npz = mnist.read(path)
    np.testing.assert_array_equal(from_npz.test_images, dataset.test_images)
    np.testing.assert_array_equal(from_npz.test_labels, dataset.test_labels)
    assert from_npz.origin == "unknown"


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn", b"x" * 100])
def test_a_damaged_npz_is_named(tmp_path, content):
    (tmp_path / "mnist.npz").write_bytes(content)
    with pytest.raises(UserError, match=r"mnist\.npz: damaged"):
        mnist.read(tmp_path)


class Attack:
    def __reduce__(self):
        return os.mkdir, (str(Attack.target),)


def test_a_hostile_pickle_is_refused_and_not_executed(made, tmp_path):
    path = made("synthetic:cifar10")
    forget_manifest(path)
    Attack.target = tmp_path / "pwned"
    (path / "cifar-10-batches-py" / "data_batch_2").write_bytes(pickle.dumps(Attack(), protocol=2))
    with pytest.raises(UserError, match=r"data_batch_2.*refused to load posix\.mkdir"):
        cifar10.read(path)
    assert not Attack.target.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a pickle",
        pickle.dumps([1, 2]),
        pickle.dumps({"data": 3, "labels": [1]}),
        pickle.dumps({"data": np.zeros((2, 3072), np.float32), "labels": [1, 2]}),
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [1]}),
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [1, 10]}),
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [1, "2"]}),
    ],
)
def test_damaged_cifar_batches_are_named(made, content):
    path = made("synthetic:cifar10")
    forget_manifest(path)
    (path / "cifar-10-batches-py" / "test_batch").write_bytes(content)
    with pytest.raises(UserError, match="test_batch"):
        cifar10.read(path)


def test_a_cifar_batch_cut_anywhere_is_a_clear_error():
    whole = pickles.dump({b"labels": [1, 2], b"data": np.arange(6144, dtype=np.uint8).reshape(2, 3072)})
    assert pickles.load(whole, "f")[b"labels"] == [1, 2]
    for end in [*range(0, 200), len(whole) - 1]:
        with pytest.raises(UserError, match="^f: "):
            pickles.load(whole[:end], "f")


def test_no_change_of_a_pickle_reaches_numpy_or_ends_in_another_error():
    whole = pickles.dump({b"labels": [1, 2], b"data": np.arange(6144, dtype=np.uint8).reshape(2, 3072)})
    random_ = random.Random(4)
    for _ in range(4000):
        content = bytearray(whole)
        for _ in range(random_.randint(1, 3)):
            content[random_.randrange(min(300, len(content)))] = random_.randrange(256)
        try:
            split = cifar10._from_python(bytes(content), "f")
        except UserError as error:
            assert str(error).startswith("f: ")
        else:
            assert split.images.shape == (len(split.labels), 32, 32, 3)


@pytest.mark.parametrize("codec", ["zlib", "rot13"])
def test_a_pickle_encodes_by_no_codec_of_its_choice(codec):
    hostile = b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX" + len(codec).to_bytes(4, "little") + codec.encode()
    with pytest.raises(UserError, match=f"refused to encode as {codec}"):
        pickles.load(hostile + b"\x86R.", "f")


def test_python_3_pickles_of_arrays_are_read(tmp_path):
    batch = {"data": np.arange(3072, dtype=np.uint8)[None], "labels": [7]}
    loaded = pickles.load(pickle.dumps(batch), "f")
    np.testing.assert_array_equal(loaded[b"data"], batch["data"])


def test_a_cut_binary_batch_is_named(made):
    path = made("synthetic:cifar10", layout="binary")
    forget_manifest(path)
    batch = path / "cifar-10-batches-bin" / "data_batch_1.bin"
    batch.write_bytes(batch.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"data_batch_1\.bin: \d+ bytes, no whole number of 3073-byte records"):
        cifar10.read(path)


def test_an_empty_place_says_what_was_looked_for_and_how_to_make_it(tmp_path):
    with pytest.raises(UserError, match=r"train-images-idx3-ubyte\.gz.*harness data make mnist --origin digits"):
        mnist.read(tmp_path)


def test_missing_names_the_command_that_helps(made, tmp_path):
    missing = manifest.missing
    assert missing(made("photos:cifar10"), "photos:cifar10") is None
    assert "--origin photos --to '/d i/r'" in str(missing(Path("/d i/r"), "photos:cifar10"))
    assert "no origin 'photos'" in str(missing(tmp_path, "photos:mnist"))
    assert "digits:mnist" in str(missing(tmp_path, "mnist"))
    assert "holds photos:cifar10, not cifar10" in str(missing(made("photos:cifar10", layout="python"), "cifar10"))
    path = made("synthetic:mnist")
    (path / "t10k-labels-idx1-ubyte.gz").write_bytes(b"")
    assert "t10k-labels-idx1-ubyte.gz is missing or cut short" in str(missing(path, "synthetic:mnist"))
    forget_manifest(path)
    assert missing(path, "mnist") is None
