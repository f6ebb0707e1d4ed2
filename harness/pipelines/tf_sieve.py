"""Letting go by the images that cannot be read or decoded, counted and named.

tf.data can drop failed elements, but neither counts them nor says which they were. So each sample gets a number and
leaves its name in a table on the way in, and takes it out again on the way out; what stays behind was dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import tensorflow as tf

_PLACES = re.compile(
    r"\{\{.*?\}\}|\[\[.*?\]\]| \[Op:\w+\] name: "
    r"|Error in user-defined function passed to \S+ transformation with iterator: \S+: "
)
#: functions that tf.data traces are graph code already; AutoGraph would only warn of what it cannot read
plain = tf.autograph.experimental.do_not_convert


class Sieve:
    """Around the map that reads and decodes; holds its tables and counters on the CPU.

    ``samples``: when so many in a row were lost, with some in flight, the stream ends instead of searching for ever.
    """

    def __init__(self, samples: int):
        self._patience = samples + 1024
        self._names = tf.lookup.experimental.MutableHashTable(tf.int64, tf.string, "")
        self._entered = _counter()
        self._latest = _counter()
        self._left = _counter()
        self._lost = _counter()
        self._total = 0

    def map(
        self, dataset: tf.data.Dataset, name: Callable[..., Any], load: Callable[..., Any], calls: int
    ) -> tf.data.Dataset:
        """``dataset.map(load)`` without the elements that fail; ``name`` gives an element's name, a string tensor."""

        def enter(*sample: Any) -> Any:
            number = self._entered.assign_add(1)
            self._names.insert(number[None], name(*sample)[None])
            return number, sample

        def leave(number: Any, loaded: Any) -> Any:
            self._names.remove(number[None])
            left = self._left.assign_add(1)
            self._latest.assign(number)
            self._lost.assign(number - left)
            return loaded

        return (
            dataset.map(plain(enter))
            .take_while(plain(lambda number, _: number - self._latest < self._patience + calls))
            .map(plain(lambda number, sample: (number, load(*sample))), num_parallel_calls=calls)
            .ignore_errors()
            .map(plain(leave))
        )

    def caught(self) -> list[str]:
        """Names of those lost since this was last asked."""
        lost = int(self._lost.numpy())
        if lost == self._total:
            return []
        latest = int(self._latest.numpy())
        numbers, names = self._names.export()
        behind = sorted(pair for pair in zip(numbers.numpy().tolist(), names.numpy(), strict=True) if pair[0] < latest)
        self._names.remove(tf.constant([number for number, _ in behind], tf.int64))
        self._total += len(behind)
        return [bytes(name).decode(errors="replace") for _, name in behind]


def reason(error: tf.errors.OpError) -> str:
    """The first line of TensorFlow's message without the names of its nodes and transformations."""
    line = _PLACES.sub("", str(error.message)).strip().split("\n")[0]
    return line.strip(" :.") or type(error).__name__


def _counter() -> Any:
    return tf.Variable(0, dtype=tf.int64, trainable=False)
