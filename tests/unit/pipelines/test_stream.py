"""Every epoch delivers each sample once over all ranks, whatever the sizes; batches are functions of their number."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime_support import spec_of
from scipy import ndimage

from harness.cli.data import request_of
from harness.comm.none import NoExchange
from harness.datasets.make import make
from harness.pipelines.stream import BatchStream, load_stream
from harness.runtime.clock import VirtualClock
from harness.runtime.interfaces import Ranks, RunContext
from harness.workloads.dcgan_mnist.recipe import Recipe as Plain
from harness.workloads.resnet20_cifar10 import recipe as cifar


def stream(samples: int, batch_size: int, rank: int = 0, world: int = 1, seed: int = 0) -> BatchStream:
    images = np.arange(samples, dtype=np.float32).reshape(-1, 1, 1, 1)
    return BatchStream(images, np.arange(samples), Plain(), batch_size, rank=rank, world=world, seed=seed)


@settings(max_examples=60, deadline=None)
@given(samples=st.integers(1, 40), batch_size=st.integers(1, 9), world=st.integers(1, 5), epochs=st.integers(1, 3))
def test_each_sample_once_per_epoch(samples, batch_size, world, epochs):
    """Uneven sizes too: ranks' positions interleave, so the first n × epochs of them hold every sample that often."""
    batches = -(-samples * epochs // (batch_size * world))
    ranks = [stream(samples, batch_size, rank, world) for rank in range(world)]
    parts = [np.concatenate([s.indices(i) for i in range(batches)]) for s in ranks]
    laid = np.stack(parts, axis=1).reshape(-1)[: samples * epochs]
    for epoch in range(epochs):
        assert sorted(laid[epoch * samples : (epoch + 1) * samples]) == list(range(samples))


def test_ranks_are_disjoint_and_complete():
    whole = stream(103, 10, seed=4)
    ranks = [stream(103, 5, rank, 2, seed=4) for rank in range(2)]
    for number in range(30):
        first, second = (s.indices(number) for s in ranks)
        assert Counter([*first, *second]) == Counter(whole.indices(number))
    assert not set(ranks[0].indices(0)) & set(ranks[1].indices(0))


def test_labels_stay_with_their_images():
    images, labels = stream(50, 8)[9]
    assert images.shape == (8, 1, 1, 1)
    assert images.dtype == np.float32
    np.testing.assert_array_equal(images.reshape(-1), labels)


def test_order_depends_on_seed_and_epoch_alone():
    one, same, other = stream(64, 64, seed=1), stream(64, 64, seed=1), stream(64, 64, seed=2)
    same.indices(5)
    np.testing.assert_array_equal(one.indices(0), same.indices(0))
    assert not np.array_equal(one.indices(0), one.indices(1))
    assert not np.array_equal(one.indices(0), other.indices(0))


def test_a_copy_in_another_process_gives_the_same_batches():
    images = np.random.default_rng(0).normal(size=(20, 32, 32, 3)).astype(np.float32)
    original = BatchStream(images, np.arange(20), cifar.Recipe(), 6, rank=0, world=1, seed=3)
    copy = pickle.loads(pickle.dumps(original))
    original[0]
    for number in (7, 0, 3):
        np.testing.assert_array_equal(original[number][0], copy[number][0])


def test_dcgan_scale():
    pixels = np.array([0, 51, 255], np.uint8).reshape(3, 1, 1, 1)
    prepared = Plain().prepare(pixels)
    np.testing.assert_allclose(prepared.reshape(-1), [-1, -0.6, 1], atol=1e-6)
    assert prepared.dtype == np.float32


def test_cifar_mean_image():
    pixels = np.random.default_rng(0).integers(0, 256, (40, 4, 4, 3), dtype=np.uint8)
    prepared = cifar.Recipe().prepare(pixels)
    np.testing.assert_allclose(prepared, pixels / 255 - (pixels / 255).mean(axis=0), atol=1e-6)
    assert prepared.dtype == np.float32


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize(("down", "right"), [(0.0, 0.0), (1.0, -2.0), (-3.2, 3.2), (0.35, -1.6)])
def test_shifts_are_those_of_scipy(down, right, flip):
    """SciPy's affine transform, as ImageDataGenerator calls it: order 1, nearest, then the flip."""
    image = np.random.default_rng(1).normal(size=(1, 12, 9, 3)).astype(np.float32)
    found = cifar.shift_and_flip(image, np.array([down]), np.array([right]), np.array([flip]))
    expected = np.stack(
        [ndimage.shift(image[0, :, :, c], (-down, -right), order=1, mode="nearest") for c in range(3)], axis=-1
    )
    np.testing.assert_allclose(found[0], expected[:, ::-1] if flip else expected, atol=1e-5)


def test_augmentation_varies_within_its_range_and_leaves_its_input_alone():
    rows = np.broadcast_to(np.arange(32, dtype=np.float32)[None, :, None, None], (400, 32, 32, 3)).copy()
    before = rows.copy()
    augmented = cifar.Recipe().augment(rows, np.random.default_rng(0))
    shifts = augmented[:, 16, 16, 0] - 16
    assert shifts.min() < -2.8
    assert shifts.max() > 2.8
    assert np.abs(shifts).max() <= 3.2 + 1e-4
    np.testing.assert_array_equal(rows, before)


def test_half_of_the_images_are_flipped():
    columns = np.broadcast_to(np.arange(32, dtype=np.float32)[None, None, :, None], (400, 32, 32, 3))
    augmented = cifar.Recipe().augment(columns, np.random.default_rng(0))
    flipped = (augmented[:, 0, 8, 0] > augmented[:, 0, 24, 0]).mean()
    assert 0.4 < flipped < 0.6


@pytest.mark.parametrize(("asked", "is_found"), [("digits:mnist", True), ("synthetic:mnist", False)])
def test_data_of_another_origin_than_the_name_says_are_a_finding(tmp_path, asked, is_found):
    make(tmp_path / "set", request_of("mnist", "synthetic", 0, 20, 10, None, None), workers=1)
    noted = []
    spec = spec_of(workload="lenet_mnist", framework="torch", dataset=asked, batch_size=4)
    ranks = Ranks(0, 1, 0, 1, "n")
    note = lambda kind, **fields: noted.append({"event": kind, **fields})  # noqa: E731
    clock = VirtualClock()
    load_stream(RunContext(spec, ranks, (0,), 1, NoExchange(), clock, "cpu", tmp_path / "set", note))
    assert [event["code"] for event in noted if event["event"] == "finding"] == ["data_origin"] * is_found
    assert [event["origin"] for event in noted if event["event"] == "data"] == ["synthetic"]
