"""A data set stored in another encoding lies in a directory of its own."""

from __future__ import annotations

import pytest

from harness.catalog import ENCODINGS, dataset_directory
from harness.datasets.convert.run import WRITERS


@pytest.mark.parametrize(
    ("name", "encoding", "directory"),
    [
        ("imagenet", "native", "imagenet"),
        ("imagenet", "lmdb", "imagenet.lmdb"),
        ("synthetic:imagenet", "tfrecord_decoded", "synthetic-imagenet.tfrecord_decoded"),
    ],
)
def test_directories(name, encoding, directory):
    assert dataset_directory(name, encoding) == directory


def test_every_encoding_but_the_native_one_can_be_written():
    assert set(ENCODINGS) == {"native", *WRITERS}
