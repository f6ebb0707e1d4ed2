"""What an input pipeline hands to a training session: the form of a batch. No framework is imported here.

``Batch.data`` is ``(images, labels)``.

images
    torch: a tensor ``(b, c, h, w)``, in any memory layout: decoded ``(b, h, w, c)`` pixels are handed over as
    ``images.permute(0, 3, 1, 2)``, which copies nothing; the session makes the layout it wants on the device.
    TensorFlow: a tensor or array ``(b, h, w, c)``.
    Either *uint8*, pixels 0 to 255 as decoded: the session scales and normalises them on the device; or *float32*,
    which the session takes as they are: scaled, normalised and augmented by the pipeline.
labels
    int64 ``(b,)``, the class, from 0; of a data set with several labels per image float32 ``(b, classes)`` of 0 and 1.

A batch always has ``axes.batch_size`` images: a last smaller one of an epoch is filled from the next epoch or dropped.
``Batch.samples`` counts the fresh ones among them; where echoing repeats some, ``Batch.consumed`` counts all. Sizes and
classes are :func:`batch_form`'s; a pipeline resizes, crops and turns grey or CMYK images to RGB accordingly.

Epochs are numbered from 0, shuffled anew by ``(seed, epoch)``; over one, the ranks' shards are disjoint and complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.catalog import DATASETS, PIPELINES, WORKLOADS, lookup, split_dataset
from harness.model.axes import Axes

IMAGE_SIZE = "image_size"


@dataclass(frozen=True)
class BatchForm:
    """Height and width in pixels, channels and classes of what a point's pipeline delivers."""

    height: int
    width: int
    channels: int
    classes: int
    multi_label: bool = False


def batch_form(axes: Axes) -> BatchForm:
    """The data set's form; images of data sets with various sizes are ``options.image_size`` pixels square.

    Raises:
        CatalogError: a workload or data set that the catalog does not know.
    """
    _, name = split_dataset(axes.dataset or "")
    dataset = lookup(DATASETS, name, "data set")
    height, width, channels = dataset.sample_shape
    if IMAGE_SIZE in lookup(WORKLOADS, axes.workload, "workload").options and not dataset.in_memory:
        height = width = option(axes, IMAGE_SIZE)
    return BatchForm(height, width, channels, dataset.classes, dataset.multi_label)


def option(axes: Axes, name: str) -> Any:
    """The value of the workload's or the pipeline's own option: the point's, else the catalog's default.

    Raises:
        KeyError: an option that neither has.
    """
    known = dict(lookup(WORKLOADS, axes.workload, "workload").options)
    if axes.pipeline is not None:
        known |= lookup(PIPELINES, axes.pipeline, "pipeline").options
    return axes.options.get(name, known[name].default)
