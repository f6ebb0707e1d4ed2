"""Steps of our TensorFlow sessions and of plain Keras scripts of the same models; started by ``bench_workloads.py``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from workloads_pairs import (
    Block,
    Held,
    answer,
    by_the_clock,
    context,
    images_and_labels,
    in_turn,
    session_of,
    under_the_step_clock,
)

from harness.workloads.dcgan_mnist.model_tf import BETA_1, LATENT, LEARNING_RATE, discriminator, generator
from harness.workloads.resnet20_cifar10.model_tf import resnet20

Batches = list[tuple[Any, Any]]


class Between(keras.callbacks.Callback):  # type: ignore[misc]
    """Seconds of the steps alone, without what ``fit`` does before and after them."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch == 1:
            self.begin_s = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.steps, self.end_s = batch, time.perf_counter()


def compiled_resnet20() -> keras.Model:
    model = resnet20()
    model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def fitted(images: np.ndarray, labels: np.ndarray, size: int) -> Block:
    """``model.fit`` on arrays in memory."""
    model = compiled_resnet20()

    def run(steps: int) -> float:
        wanted = (steps + 1) * size
        times = -(-wanted // len(images))
        between = Between()
        x, y = np.concatenate([images] * times)[:wanted], np.concatenate([labels] * times)[:wanted]
        model.fit(x, y, batch_size=size, epochs=1, shuffle=False, verbose=0, callbacks=[between])
        return (between.end_s - between.begin_s) * steps / between.steps

    return run


def on_batches(batches: Batches) -> Callable[[int], None]:
    """``train_on_batch``."""
    model = compiled_resnet20()

    def loop(steps: int) -> None:
        for step in range(steps):
            model.train_on_batch(*batches[step % len(batches)])

    return loop


def custom_dcgan(batches: Batches) -> Callable[[int], None]:
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

    return loop


def combined_dcgan(batches: Batches) -> Callable[[int], None]:
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

    return loop


def measure(quick: bool, directory: Path) -> Iterator[tuple[str, dict[str, list[float]]]]:
    blocks, steps = (2, 3) if quick else (8, 15)
    for model, workload in (("ResNet20", "resnet20_cifar10"), ("DCGAN", "dcgan_mnist"))[: 1 if quick else None]:
        made = context(workload, "tensorflow")
        size = made.axes.batch_size
        images, labels = images_and_labels(workload)
        batches = [(images[i : i + size], labels[i : i + size]) for i in range(0, len(images), size)]
        sides = {"ours": under_the_step_clock(session_of(made), Held(batches, size), directory)}
        if model == "DCGAN":
            sides["custom loop, tf.function"] = as_usual(by_the_clock(custom_dcgan(batches)))
            sides["train_on_batch, three models"] = as_usual(by_the_clock(combined_dcgan(batches)))
        else:
            sides["model.fit"] = fitted(images, labels, size)
        if model == "ResNet20" and not quick:
            sides["model.train_on_batch"] = by_the_clock(on_batches(batches))
        yield f"{model}, Keras", in_turn(sides, blocks, steps)


def as_usual(run: Block) -> Block:
    """Steps with the graph optimizer as it comes; our DCGAN turns a part of it off for the process."""

    def wrapped(steps: int) -> float:
        tf.config.optimizer.set_experimental_options({"remapping": True})
        try:
            return run(steps)
        finally:
            tf.config.optimizer.set_experimental_options({"remapping": False})

    return wrapped


if __name__ == "__main__":
    answer(measure)
