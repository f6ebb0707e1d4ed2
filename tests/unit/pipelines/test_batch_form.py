"""The form of batches and the options that pipelines and sessions read."""

from __future__ import annotations

from typing import Any

import pytest

from harness.catalog import PIPELINES, WORKLOADS
from harness.model.axes import Axes
from harness.pipelines.interface import BatchForm, batch_form, option


def axes(workload: str = "resnet_imagenet", **values: Any) -> Axes:
    return Axes(workload=workload, **values)


@pytest.mark.parametrize(
    ("dataset", "classes", "multi_label"),
    [("imagenet", 1000, False), ("synthetic:caltech256", 257, False), ("chestxray14", 14, True)],
)
def test_images_are_of_the_size_that_the_option_says(dataset: str, classes: int, multi_label: bool) -> None:
    assert batch_form(axes(dataset=dataset)) == BatchForm(256, 256, 3, classes, multi_label)
    small = axes(dataset=dataset, options={"image_size": 64})
    assert batch_form(small) == BatchForm(64, 64, 3, classes, multi_label)


def test_small_images_keep_their_size() -> None:
    assert batch_form(axes("lenet_mnist", dataset="digits:mnist")) == BatchForm(28, 28, 1, 10)


def test_options_fall_back_to_the_catalog() -> None:
    assert option(axes(), "learning_rate") == WORKLOADS["resnet_imagenet"].options["learning_rate"].default
    assert option(axes(options={"learning_rate": 0.5}), "learning_rate") == 0.5
    with pytest.raises(KeyError):
        option(axes(), "produce_s")


def test_options_of_one_name_are_one_axis() -> None:
    """A point's id leaves out an option that has its default, so there can be only one default of a name."""
    seen: dict[str, Any] = {}
    for spec in [*WORKLOADS.values(), *PIPELINES.values()]:
        for name, found in spec.options.items():
            kept = seen.setdefault(name, found)
            assert (kept.type, kept.default, kept.choices) == (found.type, found.default, found.choices), name
        assert all(o.default in o.choices for o in spec.options.values() if o.choices)
