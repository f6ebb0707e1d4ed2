"""Image files through tf.data, in the order of ALCF's ImageNet pipeline.

files → shard → shuffle → repeat → parallel map (read, decode, one crop for each box) → unbatch → batch → prefetch. The
sharding comes first, so each rank reads its own files only. Trees without boxes give one image for each file. As in
the source, the shuffle buffer holds 200,000 file names and 8 batches are prefetched, unless the axes say otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from harness.catalog import split_dataset
from harness.datasets import imagenet
from harness.datasets.filesets import ImageFiles
from harness.errors import UserError
from harness.pipelines.interface import batch_form, option
from harness.pipelines.tf_images import WHOLE, boxes_in_graph, boxes_in_python, crops, decode
from harness.pipelines.tf_sieve import Sieve
from harness.pipelines.tf_stream import TfStream, finished, mapped, parallel_calls, shuffled
from harness.pipelines.trees import image_tree
from harness.runtime.interfaces import RunContext

_TO_ANNOTATION = (f"^{imagenet.DATA}/", f"{imagenet.ANNOTATIONS}/")
_TO_XML = (r"\.JPEG$", ".xml")
SHUFFLE_BUFFER = 200_000
PREFETCH = 8


def build(context: RunContext) -> TfStream:
    """The pipeline of one rank.

    Raises:
        UserError: no image tree where the data should be, or fewer files than ranks.
    """
    files = image_tree(context)
    world = context.ranks.world
    if len(files) < world:
        raise UserError(f"{files.root}: {len(files)} images cannot be shared by {world} ranks")
    loading = Loading(context, files)
    return TfStream(context, loading.batches, prefetch=PREFETCH, samples=-(-len(files) // world))


@dataclass(frozen=True)
class Loading:
    """From a tree's files to batches of images."""

    context: RunContext
    files: ImageFiles

    def batches(self, sieve: Sieve | None) -> tf.data.Dataset:
        axes, ranks = self.context.axes, self.context.ranks
        labels = self.files.labels.astype(np.float32 if self.files.labels.ndim == 2 else np.int64)
        names = np.array([os.fsencode(file) for file in self.files.files], object)
        samples = tf.data.Dataset.from_tensor_slices((names, labels, self._annotated())).shard(ranks.world, ranks.rank)
        samples = shuffled(samples, self.context, SHUFFLE_BUFFER).repeat()
        loaded = mapped(samples, lambda file, *_: self._path(file), self._load(), parallel_calls(self.context), sieve)
        return loaded.unbatch().batch(axes.batch_size, drop_remainder=True)

    def _load(self) -> Callable[..., Any]:
        """(file, label, annotated) to images ``(k, h, w, c)``, labels ``(k, …)`` and, echoing, which are fresh."""
        form = batch_form(self.context.axes)
        boxes_of = self._boxes()
        finish = finished(self.context)

        def load(file: Any, label: Any, annotated: Any) -> Any:
            image = decode(tf.io.read_file(self._path(file)), form.channels)
            return finish(crops(image, boxes_of(file, annotated), form), label)

        return load

    def _boxes(self) -> Callable[[Any, Any], Any]:
        in_python = boxes_in_python(self.files.root)

        def read(file: Any) -> Any:
            if option(self.context.axes, "boxes") == "python":
                return in_python(file)
            name = tf.strings.regex_replace(tf.strings.regex_replace(file, *_TO_ANNOTATION), *_TO_XML)
            return boxes_in_graph(tf.io.read_file(self._path(name)))

        if not self._has_boxes():
            return lambda file, annotated: tf.constant(WHOLE)
        return lambda file, annotated: tf.cond(annotated, lambda: read(file), lambda: tf.constant(WHOLE))

    def _annotated(self) -> NDArray[np.bool_]:
        """Which images have an annotation; found by listing directories, not by asking for each file."""
        files, root = self.files.files, self.files.root
        if not self._has_boxes():
            return np.zeros(len(files), bool)
        wanted = [imagenet.annotation_of(file) for file in files]
        present: set[str] = set()
        for folder in {file.rpartition("/")[0] for file in wanted}:
            if (root / folder).is_dir():
                present.update(f"{folder}/{entry.name}" for entry in os.scandir(root / folder))
        return np.array([file in present for file in wanted], bool)

    def _has_boxes(self) -> bool:
        axes = self.context.axes
        annotated = axes.encoding == "native" and split_dataset(axes.dataset)[1] == imagenet.FORMAT
        return annotated and option(axes, "boxes") != "ignore"

    def _path(self, file: Any) -> Any:
        return tf.strings.join([f"{self.files.root}/".encode(errors="surrogateescape"), file])
