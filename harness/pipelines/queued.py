"""Where the enqueue threads of ``tf_queue`` get their samples from."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from harness.catalog import WORKLOADS, load, lookup
from harness.datasets.stored import open_stored
from harness.errors import UserError
from harness.pipelines.corrupt import Losses, Lost
from harness.pipelines.interface import BatchForm, batch_form, option
from harness.pipelines.record_index import Records
from harness.pipelines.stream import Recipe, load_arrays
from harness.pipelines.tf_images import decode
from harness.pipelines.tf_sieve import reason
from harness.runtime.interfaces import RunContext

Samples = tuple[NDArray[np.float32], NDArray[np.int64]]


class Source(Protocol):
    """Samples by number, prepared for the model when they are asked for; asked by several threads at once."""

    def __len__(self) -> int: ...

    def load(self, numbers: NDArray[np.int64], random: np.random.Generator) -> Samples:
        """float32 images ``(n, h, w, c)`` and labels ``(n,)``; without those that cannot be decoded.

        Copies in a row, which echoing makes, are read, decoded and prepared once, and augmented each for itself.
        """

    def close(self) -> None: ...


class ArraySource:
    """A data set in memory as it is published, uint8; each fetch prepares its samples."""

    def __init__(self, context: RunContext):
        dataset, self._recipe = load_arrays(context)
        self._images = dataset.train_images
        self._labels = dataset.train_labels.astype(np.int64)

    def __len__(self) -> int:
        return len(self._images)

    def load(self, numbers: NDArray[np.int64], random: np.random.Generator) -> Samples:
        once, copies = without_copies(numbers)
        prepared = self._recipe.prepare(self._images[once])
        return self._recipe.augment(prepared[copies], random), self._labels[numbers]

    def close(self) -> None:
        """Nothing is open."""


class RecordSource:
    """Encoded images in the TFRecord shards of a split."""

    def __init__(self, context: RunContext, split: str = "train"):
        axes = context.axes
        recipe = lookup(WORKLOADS, axes.workload, "workload").recipe
        if context.data_path is None or recipe is None:
            raise UserError(f"workload {axes.workload} needs a data set directory and a recipe to read records")
        stored = open_stored(context.data_path, axes.encoding)
        self._records = Records(stored.files(split))
        self._recipe: Recipe = load(recipe)()
        self._decode = _decoder(batch_form(axes))
        self._losses = Losses(option(axes, "corrupt") == "skip", context.note)
        self._lock = threading.Lock()
        self._in_a_row = 0

    def __len__(self) -> int:
        return len(self._records)

    def load(self, numbers: NDArray[np.int64], random: np.random.Generator) -> Samples:
        once, copies = without_copies(numbers)
        records = [self._records[number] for number in once]
        try:
            images, labels = self._decode(tf.constant(records))
            self._in_a_row = 0
        except tf.errors.OpError:
            images, labels, kept = self._one_by_one(records)
            copies = (np.cumsum(kept) - 1)[copies[kept[copies]]]
        prepared = self._recipe.prepare(images.numpy())
        return self._recipe.augment(prepared[copies], random), labels.numpy()[copies]

    def _one_by_one(self, records: list[bytes]) -> tuple[Any, Any, NDArray[np.bool_]]:
        """Images and labels of the records that can be decoded, and which those are."""
        parts = [self._decode(tf.zeros([0], tf.string))]
        kept = np.ones(len(records), bool)
        for place, record in enumerate(records):
            try:
                parts.append(self._decode(tf.constant([record])))
                self._in_a_row = 0
            except tf.errors.OpError as error:
                kept[place] = False
                self._lose(Lost(_name(record), reason(error)))
        images, labels = zip(*parts, strict=True)
        return tf.concat(images, 0), tf.concat(labels, 0), kept

    def _lose(self, lost: Lost) -> None:
        with self._lock:
            self._losses.add([lost])
            self._in_a_row += 1
        if self._in_a_row > len(self):
            raise UserError(f"none of {len(self)} images in a row could be decoded, the last one {lost.file}")

    def close(self) -> None:
        self._losses.summarise()
        self._records.close()


def without_copies(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``(numbers without those equal to the one before, which of them each is)``."""
    begins = np.append(True, numbers[1:] != numbers[:-1])
    return numbers[begins], np.cumsum(begins) - 1


def _decoder(form: BatchForm) -> Callable[[Any], Any]:
    """From records ``(n,)`` to uint8 images ``(n, h, w, c)`` and labels ``(n,)``, in TensorFlow's graph."""
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([1], tf.int64),
    }
    pixels = tf.TensorSpec((form.height, form.width, form.channels), tf.uint8)

    def decoded(records: Any) -> Any:
        parsed = tf.io.parse_example(records, features)
        images = tf.map_fn(
            lambda content: tf.ensure_shape(decode(content, form.channels), pixels.shape),
            parsed["image/encoded"],
            fn_output_signature=pixels,
        )
        return images, parsed["image/class/label"][:, 0]

    graph: Callable[[Any], Any] = tf.function(
        decoded, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
    )
    return graph


def _name(record: bytes) -> str:
    try:
        name = tf.io.parse_single_example(record, {"image/filename": tf.io.FixedLenFeature([], tf.string)})
    except tf.errors.OpError:
        return "a record that is no tf.train.Example"
    return str(name["image/filename"].numpy().decode(errors="replace"))
