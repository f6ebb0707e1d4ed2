"""TensorFlow's and torchvision's own readers on what the harness writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from datasets_support import request_of

from harness.datasets import cifar10, imagenet, mnist
from harness.datasets.convert.run import Settings, convert
from harness.datasets.convert.tfrecord import frame
from harness.datasets.make import make
from harness.datasets.manifest import Request
from harness.datasets.stored import open_stored

pytestmark = pytest.mark.framework
REQUEST = Request(format="imagenet", origin="synthetic", counts={"train": 24, "test": 4}, options={"classes": 4})


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("source") / "tree"
    make(path, REQUEST)
    return path


def test_tensorflow_reads_tfrecords_with_their_checksums(tree, tmp_path):
    tf = pytest.importorskip("tensorflow")
    convert(tree, tmp_path / "set", Settings("tfrecord", shard_bytes=1 << 20))
    files = [str(f) for f in open_stored(tmp_path / "set", "tfrecord").files("train")]
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        "image/filename": tf.io.FixedLenFeature([], tf.string),
        "image/object/bbox/xmax": tf.io.VarLenFeature(tf.float32),
    }
    source = imagenet.read(tree).train
    expected = {Path(f).stem: (int(n), f) for f, n in zip(source.files, source.labels, strict=True)}
    seen = set()
    for record in tf.data.TFRecordDataset(files):
        parsed = tf.io.parse_single_example(record, features)
        name = parsed["image/filename"].numpy().decode()
        label, file = expected[name]
        assert int(parsed["image/class/label"]) == label
        assert parsed["image/encoded"].numpy() == (tree / file).read_bytes()
        boxes = imagenet.boxes_of(tree, file)
        xmax = tf.sparse.to_dense(parsed["image/object/bbox/xmax"]).numpy()
        np.testing.assert_allclose(xmax, [b.xmax for b in boxes] if len(xmax) else [], rtol=1e-6)
        assert tf.io.decode_image(parsed["image/encoded"], channels=3, expand_animations=False).shape[-1] == 3
        seen.add(name)
    assert seen == set(expected)


def test_tensorflow_writes_the_same_frame(tmp_path):
    tf = pytest.importorskip("tensorflow")
    with tf.io.TFRecordWriter(str(tmp_path / "one")) as writer:
        writer.write(b"harness")
    assert (tmp_path / "one").read_bytes() == frame(b"harness")


def test_tensorflow_decodes_decoded_tfrecords(tree, tmp_path):
    tf = pytest.importorskip("tensorflow")
    convert(tree, tmp_path / "set", Settings("tfrecord_decoded", side=16))
    stored = open_stored(tmp_path / "set", "tfrecord_decoded")
    features = {"image/raw": tf.io.FixedLenFeature([], tf.string)}
    for record in tf.data.TFRecordDataset([str(f) for f in stored.files("test")]):
        raw = tf.io.decode_raw(tf.io.parse_single_example(record, features)["image/raw"], tf.uint8)
        assert tf.reshape(raw, stored.shape).numpy().std() > 1


def test_torchvision_and_keras_read_resized_jpegs_by_directory(tree, tmp_path):
    pytest.importorskip("torch")
    from harness.pipelines.torchvision_compat import torchvision

    convert(tree, tmp_path / "set", Settings("jpeg", side=24))
    folder = torchvision.datasets.ImageFolder(tmp_path / "set" / "train")
    source = imagenet.read(tree)
    assert tuple(folder.classes) == source.classes
    assert np.bincount(folder.targets).tolist() == np.bincount(source.train.labels).tolist()
    assert folder[0][0].size == (24, 24)


def test_torchvision_reads_the_made_mnist_and_cifar_batches(tmp_path):
    pytest.importorskip("torch")
    import gzip
    import pickle

    from harness.pipelines.torchvision_compat import torchvision

    raw = tmp_path / "MNIST" / "raw"
    make(raw, request_of("digits:mnist"))
    for packed in raw.glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    ours = mnist.read(raw)
    theirs = torchvision.datasets.MNIST(tmp_path, train=True)
    np.testing.assert_array_equal(theirs.data.numpy(), ours.train_images[..., 0])
    np.testing.assert_array_equal(theirs.targets.numpy(), ours.train_labels)
    make(tmp_path / "cifar", request_of("photos:cifar10"))
    cifar = cifar10.read(tmp_path / "cifar")
    with (tmp_path / "cifar/cifar-10-batches-py/test_batch").open("rb") as stream:
        batch = pickle.load(stream, encoding="latin1")
    images = batch["data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(images, cifar.test_images)


def test_keras_reads_the_made_cifar_batches(tmp_path):
    pytest.importorskip("keras")
    from keras.src.datasets.cifar import load_batch

    make(tmp_path / "cifar", request_of("photos:cifar10"))
    images, labels = load_batch(str(tmp_path / "cifar/cifar-10-batches-py/data_batch_1"))
    ours = cifar10.read(tmp_path / "cifar")
    np.testing.assert_array_equal(np.transpose(images, (0, 2, 3, 1)), ours.train_images[: len(labels)])
    assert labels == ours.train_labels[: len(labels)].tolist()
