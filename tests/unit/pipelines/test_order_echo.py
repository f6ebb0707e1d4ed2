"""Example echoing over an order of samples, and records by their framing."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from harness.datasets.convert.tfrecord import frame
from harness.errors import UserError
from harness.pipelines.order import Order
from harness.pipelines.record_index import Records


@pytest.mark.parametrize("echo", [1, 2, 3, 7])
@pytest.mark.parametrize("world", [1, 2])
def test_each_sample_is_repeated_in_a_row(echo, world):
    for rank in range(world):
        place = {"rank": rank, "world": world, "seed": 3}
        once, echoed = Order(11, 4, **place), Order(11, 4, **place, echo=echo)
        plain = np.concatenate([once.indices(i) for i in range(2)])
        batches = range(echo * 2)
        copies = np.concatenate([echoed.indices(i) for i in batches])
        np.testing.assert_array_equal(copies, np.repeat(plain, echo))
        firsts = [sum(number % echo == 0 for number in range(4 * i, 4 * i + 4)) for i in batches]
        assert [echoed.fresh(i) for i in batches] == firsts
        for i in batches:
            samples, which = echoed.copies(i)
            np.testing.assert_array_equal(samples[which], echoed.indices(i))
            assert len(samples) == len(set(which.tolist()))


def test_records_by_number(tmp_path):
    contents = [b"", b"one", bytes(range(256)) * 9, b"\x00\xff"]
    (tmp_path / "a").write_bytes(frame(contents[0]) + frame(contents[1]))
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "c").write_bytes(frame(contents[2]) + frame(contents[3]))
    records = Records([tmp_path / name for name in "abc"])
    assert [records[number] for number in range(len(records))] == contents
    records.close()
    assert len(records) == 0


@pytest.mark.parametrize("cut", [1, 5, 14])
def test_a_torn_file_is_named(tmp_path, cut):
    whole = frame(b"one") + frame(b"three")
    (tmp_path / "torn").write_bytes(whole[:-cut])
    with pytest.raises(UserError, match=r"torn: torn after 1 records"):
        Records([tmp_path / "torn"])


def test_a_length_beyond_the_end_is_torn_not_read(tmp_path):
    (tmp_path / "odd").write_bytes(struct.pack("<Q", 1 << 60) + bytes(20))
    with pytest.raises(UserError, match="odd: torn after 0 records"):
        Records([tmp_path / "odd"])
