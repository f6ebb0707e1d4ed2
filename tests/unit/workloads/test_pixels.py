"""Pixels to a model's input."""

from __future__ import annotations

import numpy as np

from harness.workloads.lenet_mnist.recipe import Recipe
from harness.workloads.pixels import Pixels
from harness.workloads.resnet_imagenet.settings import PIXELS


def test_each_channel_by_its_own_mean_and_std() -> None:
    images = np.array([[[0, 51, 255]]], np.uint8)
    found = Pixels((0.0, 0.2, 0.5), (1.0, 0.5, 0.25)).apply(images)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[0, 0], [0.0, 0.0, 2.0], atol=1e-6)


def test_imagenet_statistics() -> None:
    mean = np.array([[123.675, 116.28, 103.53]])
    np.testing.assert_allclose(mean * PIXELS.scale + PIXELS.offset, 0, atol=1e-9)


def test_lenet_sees_half_below_and_half_above_zero() -> None:
    np.testing.assert_array_equal(
        Recipe().prepare(np.array([0, 255], np.uint8).reshape(2, 1, 1, 1)).ravel(), [-0.5, 0.5]
    )
