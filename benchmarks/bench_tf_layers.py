"""What the harness's own layers in a tf.data pipeline cost, per element, beside a pipeline without them.

The counter in front of the prefetch buffer runs once a batch; the sieve, which names images that cannot be decoded,
once a sample and only with ``corrupt: skip``. Each figure is the least of several rounds: other work only adds to it.

    python benchmarks/bench_tf_layers.py
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

from harness.pipelines.tf_sieve import Sieve, plain

ELEMENTS = 3000
ROUNDS = 7


def seconds_per_element(make: Callable[[], tf.data.Dataset]) -> float:
    """The least mean over :data:`ROUNDS` rounds of reading :data:`ELEMENTS` elements."""
    options = tf.data.Options()
    options.threading.private_threadpool_size = 2
    options.experimental_optimization.inject_prefetch = False
    iterator = iter(make().with_options(options))
    next(iterator)
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(ELEMENTS // 100):
            next(iterator)
        rounds.append((time.perf_counter() - begin) / ELEMENTS)
    return min(rounds)


def elements() -> tf.data.Dataset:
    return tf.data.Dataset.range(1 << 40)


def bare() -> tf.data.Dataset:
    return elements().map(lambda n: n + 1, num_parallel_calls=2).batch(100)


def counted() -> tf.data.Dataset:
    """A counter for every element, a hundred times as many as there are in a pipeline with batches of 100."""
    made = tf.Variable(0, dtype=tf.int64)

    def count(number: tf.Tensor) -> tf.Tensor:
        made.assign_add(1)
        return number

    return elements().map(lambda n: n + 1, num_parallel_calls=2).map(plain(count)).batch(100)


def sieved() -> tf.data.Dataset:
    return Sieve(ELEMENTS).map(elements(), tf.strings.as_string, lambda n: n + 1, 2).batch(100)


def main() -> None:
    base_s = seconds_per_element(bare)
    print(f"parallel map alone            {base_s * 1e6:7.1f} µs an element")
    for name, make in (("counter, once a batch", counted), ("sieve, once a sample", sieved)):
        extra_s = seconds_per_element(make) - base_s
        print(f"{name:<30}{extra_s * 1e6:7.1f} µs more")


if __name__ == "__main__":
    main()
