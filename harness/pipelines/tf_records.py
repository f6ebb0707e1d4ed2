"""TFRecord shards through tf.data, in the two orders of operations that Dell compared.

old  shards → parallel map (parse, decode) → shard over ranks → shuffle → repeat → batch → prefetch
new  shards → shard over ranks → shuffle → interleave ten → prefetch → shuffle → repeat → map and batch → prefetch

In the old order every rank reads and decodes all records and throws those of the other ranks away: the work of a rank
does not shrink with their number. That is the point of the comparison, and kept. In the new order a rank reads its own
shards only; so ranks share evenly only if shards are many and equal. Sizes are the source's: ten parallel calls,
shuffle buffers of 500, and as many elements as a batch has prefetched; ``workers`` and ``shuffle_buffer`` replace them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from harness.datasets.stored import StoredSet, open_stored
from harness.errors import UserError
from harness.pipelines.interface import BatchForm, batch_form
from harness.pipelines.tf_images import WHOLE, crops, decode
from harness.pipelines.tf_sieve import Sieve
from harness.pipelines.tf_stream import AUTOTUNE, TfStream, finished, mapped, shuffled
from harness.runtime.interfaces import RunContext

CALLS = 10
CYCLE = 10
SHUFFLE_BUFFER = 500


def build_old(context: RunContext) -> TfStream:
    """The old order. ``prefetch`` unset: as many batches as a batch has images, as in the source.

    Raises:
        UserError: no TFRecord shards where the data should be, or fewer samples than ranks.
    """
    reading = Reading.of(context)
    total = sum(reading.stored.samples("train"))
    if total < context.ranks.world:
        raise UserError(f"{reading.stored.path}: {total} images cannot be shared by {context.ranks.world} ranks")
    return TfStream(context, reading.old, prefetch=context.axes.batch_size, samples=total)


def build_new(context: RunContext) -> TfStream:
    """The new order. ``prefetch`` unset: tf.data's choice.

    Raises:
        UserError: no TFRecord shards where the data should be, or fewer of them than ranks.
    """
    reading = Reading.of(context)
    shards, ranks = reading.stored.samples("train"), context.ranks
    if len(shards) < ranks.world:
        raise UserError(
            f"{reading.stored.path}: {len(shards)} shards cannot be shared by {ranks.world} ranks; "
            "convert into more of them: harness data convert --shard-samples"
        )
    return TfStream(context, reading.new, prefetch=AUTOTUNE, samples=sum(shards[ranks.rank :: ranks.world]), fuse=True)


@dataclass(frozen=True)
class Reading:
    """From the shards of a converted set to batches of images."""

    context: RunContext
    stored: StoredSet

    @classmethod
    def of(cls, context: RunContext) -> Reading:
        if context.data_path is None:
            raise UserError(f"workload {context.axes.workload} has no data set, so there are no shards to read")
        return cls(context, open_stored(context.data_path, context.axes.encoding))

    def old(self, sieve: Sieve | None) -> tf.data.Dataset:
        """Every rank maps every record, then keeps its own."""
        axes, ranks = self.context.axes, self.context.ranks
        images = self._loaded(tf.data.TFRecordDataset(self._files()), sieve).shard(ranks.world, ranks.rank)
        images = shuffled(images, self.context, SHUFFLE_BUFFER).repeat()
        return self._flat(images).batch(axes.batch_size, drop_remainder=True)

    def new(self, sieve: Sieve | None) -> tf.data.Dataset:
        """Every rank reads its own shards."""
        axes, ranks = self.context.axes, self.context.ranks
        files = tf.data.Dataset.from_tensor_slices(self._files()).shard(ranks.world, ranks.rank)
        files = shuffled(files, self.context, SHUFFLE_BUFFER)
        records = files.interleave(tf.data.TFRecordDataset, cycle_length=CYCLE, num_parallel_calls=CYCLE)
        records = shuffled(records.prefetch(axes.batch_size), self.context, SHUFFLE_BUFFER, salt=1).repeat()
        return self._flat(self._loaded(records, sieve)).batch(axes.batch_size, drop_remainder=True)

    def _files(self) -> list[str]:
        return [str(file) for file in self.stored.files("train")]

    def _loaded(self, records: tf.data.Dataset, sieve: Sieve | None) -> tf.data.Dataset:
        calls = self.context.axes.workers or CALLS
        return mapped(records, record_name, self._load(batch_form(self.context.axes)), calls, sieve)

    def _load(self, form: BatchForm) -> Callable[[Any], Any]:
        """From a record to image ``(h, w, c)`` and label; echoing, to all copies and which is fresh."""
        features, pixels = _features(form, self.stored.shape), self._pixels(form)
        finish = finished(self.context)
        single = self.context.axes.echo == 1

        def load(record: Any) -> Any:
            parsed = tf.io.parse_single_example(record, features)
            numbers = parsed["image/class/label"]
            label = tf.cast(numbers, tf.float32) if form.multi_label else numbers[0]
            found = finish(pixels(parsed)[None], label)
            return tuple(part[0] for part in found) if single else found

        return load

    def _pixels(self, form: BatchForm) -> Callable[[Any], Any]:
        shape, size = self.stored.shape, (form.height, form.width)

        def pixels(parsed: Any) -> Any:
            if shape is None:
                image = decode(parsed["image/encoded"], form.channels)
            else:
                image = tf.reshape(tf.io.decode_raw(parsed["image/raw"], tf.uint8), shape)
            return image if shape is not None and shape[:2] == size else crops(image, tf.constant(WHOLE), form)[0]

        return pixels

    def _flat(self, images: tf.data.Dataset) -> tf.data.Dataset:
        """The copies of a sample one after the other, where there are any."""
        return images if self.context.axes.echo == 1 else images.unbatch()


def _features(form: BatchForm, shape: tuple[int, int, int] | None) -> dict[str, Any]:
    """As :mod:`harness.datasets.convert.tfrecord` writes them."""
    labels = form.classes if form.multi_label else 1
    return {
        "image/encoded" if shape is None else "image/raw": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([labels], tf.int64),
    }


def record_name(record: Any) -> Any:
    """The file's name that a record carries."""
    feature = tf.io.FixedLenFeature([], tf.string, default_value="(a record without a file name)")
    return tf.io.parse_single_example(record, {"image/filename": feature})["image/filename"]
