"""Steps of our TensorFlow sessions and of plain Keras scripts of the same models; started by ``bench_workloads.py``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from workloads_pairs import (
    Held,
    Readings,
    Side,
    Spent,
    answer,
    context,
    images_and_labels,
    in_turn,
    now,
    session_of,
    sizes,
    timed,
    under_the_step_clock,
)

from harness.workloads.dcgan_mnist.model_tf import BETA_1, LATENT, LEARNING_RATE, discriminator, generator
from harness.workloads.resnet20_cifar10.model_tf import resnet20

Batches = list[tuple[Any, Any]]


class Between(keras.callbacks.Callback):  # type: ignore[misc]
    """What the steps took behind the first ``lead``, without what ``fit`` does before and after them."""

    def __init__(self, lead: int):
        super().__init__()
        self._lead = lead

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch == self._lead:
            self.begin = now()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.end = now()


def compiled_resnet20() -> keras.Model:
    model = resnet20()
    model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def fitted(batches: Batches) -> Side:
    """``model.fit`` on arrays in memory."""
    model, size = compiled_resnet20(), len(batches[0][0])
    images, labels = map(np.concatenate, zip(*batches, strict=True))

    def run(lead: int, steps: int) -> Spent:
        wanted = (lead + steps) * size
        times = -(-wanted // len(images))
        between = Between(lead)
        x, y = np.concatenate([images] * times)[:wanted], np.concatenate([labels] * times)[:wanted]
        model.fit(x, y, batch_size=size, epochs=1, shuffle=False, verbose=0, callbacks=[between])
        return between.end.since(between.begin)

    return run


def on_batches(batches: Batches) -> Side:
    """``train_on_batch``."""
    model = compiled_resnet20()

    def loop(steps: int) -> None:
        for step in range(steps):
            model.train_on_batch(*batches[step % len(batches)])

    return timed(loop)


def custom_dcgan(batches: Batches) -> Side:
    """The custom loop of the tutorials, with the workload's three updates, as one graph."""
    make, judge = generator(), discriminator()
    make_adam, judge_adam = (keras.optimizers.Adam(LEARNING_RATE, beta_1=BETA_1) for _ in range(2))
    entropy = keras.losses.BinaryCrossentropy(from_logits=True)

    @tf.function
    def train_step(images: Any) -> Any:
        size = tf.shape(images)[0]
        noise = tf.random.normal([size, LATENT])
        total = 0.0
        for pictures, labels in ((images, tf.ones([size, 1])), (make(noise, training=False), tf.zeros([size, 1]))):
            with tf.GradientTape() as tape:
                loss = entropy(labels, judge(pictures, training=True))
            gradients = tape.gradient(loss, judge.trainable_variables)
            judge_adam.apply_gradients(zip(gradients, judge.trainable_variables, strict=True))
            total += loss / 2
        with tf.GradientTape() as tape:
            loss = entropy(tf.ones([size, 1]), judge(make(noise, training=True), training=True))
        gradients = tape.gradient(loss, make.trainable_variables)
        make_adam.apply_gradients(zip(gradients, make.trainable_variables, strict=True))
        return total

    def loop(steps: int) -> None:
        for step in range(steps):
            float(train_step(batches[step % len(batches)][0]))

    return as_usual(timed(loop))


def combined_dcgan(batches: Batches) -> Side:
    """``train_on_batch`` of the discriminator, twice, and of the generator through it: the usual script."""
    make, judge = generator(), discriminator()
    entropy = keras.losses.BinaryCrossentropy(from_logits=True)
    judge.compile(keras.optimizers.Adam(LEARNING_RATE, beta_1=BETA_1), entropy)
    seen_through = discriminator()
    seen_through.trainable = False
    combined = keras.Sequential([keras.Input((LATENT,)), make, seen_through])
    combined.compile(keras.optimizers.Adam(LEARNING_RATE, beta_1=BETA_1), entropy)
    size = len(batches[0][0])
    ones, zeros = np.ones((size, 1), np.float32), np.zeros((size, 1), np.float32)

    def loop(steps: int) -> None:
        for step in range(steps):
            noise = np.random.normal(size=(size, LATENT)).astype(np.float32)
            fake = make.predict_on_batch(noise)
            judge.train_on_batch(batches[step % len(batches)][0], ones)
            judge.train_on_batch(fake, zeros)
            combined.train_on_batch(noise, ones)

    return as_usual(timed(loop))


def as_usual(run: Side) -> Side:
    """Steps with the graph optimizer as it comes; our DCGAN turns a part of it off for the process."""

    def wrapped(lead: int, steps: int) -> Spent:
        tf.config.optimizer.set_experimental_options({"remapping": True})
        try:
            return run(lead, steps)
        finally:
            tf.config.optimizer.set_experimental_options({"remapping": False})

    return wrapped


def compared(
    workload: str, plain: Mapping[str, Callable[[Batches], Side]], sized: dict[str, int], directory: Path
) -> Readings:
    """Our session and the plain scripts, in turn."""
    made = context(workload, "tensorflow")
    size = made.axes.batch_size
    images, labels = images_and_labels(workload)
    batches = [(images[i : i + size], labels[i : i + size]) for i in range(0, len(images), size)]

    def ours() -> Side:
        return under_the_step_clock(session_of(made), Held(batches, size), directory)

    return in_turn({"ours": ours} | {name: partial(make, batches) for name, make in plain.items()}, **sized)


def measure(options: argparse.Namespace, directory: Path) -> Iterator[tuple[str, Readings]]:
    plain = {"model.fit": fitted} | ({} if options.quick else {"model.train_on_batch": on_batches})
    yield "ResNet20, Keras", compared("resnet20_cifar10", plain, sizes(options), directory)
    if not options.quick:
        plain = {"custom loop, tf.function": custom_dcgan, "train_on_batch, three models": combined_dcgan}
        yield "DCGAN, Keras", compared("dcgan_mnist", plain, sizes(options), directory)


if __name__ == "__main__":
    answer(measure)
