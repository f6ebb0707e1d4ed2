"""DCGAN on MNIST in Keras 3 on TensorFlow: generator 856,193 and discriminator 393,729 parameters.

One step is three updates: the discriminator on a batch of real images, the discriminator on as many generated ones,
and the generator through the discriminator, from the same latent vectors. As in the Keras programs this follows, the
images shown to the discriminator come from the generator in inference mode, and the sigmoid's cross-entropy is used
with labels 1 and 0. Batch normalisation uses the batch's own statistics in all three updates; so the discriminator's
running averages, which nothing reads, see the generator's batch too. The sigmoid is part of the loss.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import keras
import tensorflow as tf
from keras import layers

from harness.runtime.interfaces import Batch, ModelFacts, RunContext, StepOutcome
from harness.workloads.training_tf import Trainer, count, digest

LATENT = 100
LEARNING_RATE = 2e-4
BETA_1 = 0.5


def build(context: RunContext) -> Session:
    return Session(context)


def generator() -> keras.Model:
    """Latent ``(b, 100)`` → images ``(b, 28, 28, 1)`` in [-1, 1]."""
    return keras.Sequential(
        [
            keras.Input((LATENT,)),
            layers.Dense(128 * 7 * 7, activation="relu"),
            layers.Reshape((7, 7, 128)),
            layers.UpSampling2D(),
            layers.Conv2D(128, 3, padding="same"),
            layers.BatchNormalization(momentum=0.8),
            layers.ReLU(),
            layers.UpSampling2D(),
            layers.Conv2D(64, 3, padding="same"),
            layers.BatchNormalization(momentum=0.8),
            layers.ReLU(),
            layers.Conv2D(1, 3, padding="same"),
            layers.Activation("tanh", dtype="float32"),
        ],
        name="generator",
    )


def discriminator() -> keras.Model:
    """Images ``(b, 28, 28, 1)`` → logits ``(b, 1)``, high for real."""
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, 2, padding="same"),
            layers.LeakyReLU(0.2),
            layers.Dropout(0.25),
            layers.Conv2D(64, 3, 2, padding="same"),
            layers.ZeroPadding2D(((0, 1), (0, 1))),
            layers.BatchNormalization(momentum=0.8),
            layers.LeakyReLU(0.2),
            layers.Dropout(0.25),
            layers.Conv2D(128, 3, 2, padding="same"),
            layers.BatchNormalization(momentum=0.8),
            layers.LeakyReLU(0.2),
            layers.Dropout(0.25),
            layers.Conv2D(256, 3, padding="same"),
            layers.BatchNormalization(momentum=0.8),
            layers.LeakyReLU(0.2),
            layers.Dropout(0.25),
            layers.Flatten(),
            layers.Dense(1),
        ],
        name="discriminator",
    )


class Session:
    """Generator and discriminator in training on one rank. The loss is the discriminator's mean over its two halves."""

    def __init__(self, context: RunContext):
        # Grappler's remapper fails on the gradient of a LeakyReLU right behind a convolution, and says so as an error
        tf.config.optimizer.set_experimental_options({"remapping": False})
        self._trainer = trainer = Trainer(context)
        with trainer.on_device():
            self.generator, self.discriminator = generator(), discriminator()
            trainer.start_equal([self.generator, self.discriminator])
            # drawn from the rank's own seed, so that ranks see different latent vectors
            self._seeds = keras.random.SeedGenerator()
            self._judge = trainer.update(self._judged, self.discriminator.trainable_variables, self._adam())
            self._fool = trainer.update(self._fooled, self.generator.trainable_variables, self._adam())
        self._imagine = trainer.function(self._imagined)
        self._step = trainer.step_function(self._train)

    def _adam(self) -> keras.optimizers.Optimizer:
        return self._trainer.optimizer(keras.optimizers.Adam(LEARNING_RATE, beta_1=BETA_1))

    def _judged(self, images: Any, label: Any) -> Any:
        return _cross_entropy(self.discriminator(images, training=True), label)

    def _fooled(self, latent: Any) -> Any:
        return _cross_entropy(self.discriminator(self.generator(latent, training=True), training=True), tf.ones([]))

    def _imagined(self, images: Any) -> tuple[Any, Any]:
        latent = keras.random.normal((images.shape[0], LATENT), seed=self._seeds)
        return latent, self.generator(latent, training=False)

    def _train(self, images: Any) -> Any:
        latent, generated = self._imagine(images)
        real = self._judge(images, tf.ones([]))
        fake = self._judge(generated, tf.zeros([]))
        self._fool(latent)
        return (real + fake) / 2

    def facts(self) -> ModelFacts:
        parameters, trainable = count([self.generator, self.discriminator])
        parts = {m.name: m.count_params() for m in (self.generator, self.discriminator)}
        return ModelFacts("dcgan", parameters, trainable, parts)

    def to_device(self, batch: Batch) -> Batch:
        return replace(batch, data=self._trainer.tensors(batch.data[:1]))

    def step(self, batch: Batch) -> StepOutcome:
        self._trainer.exchange_s = 0.0
        with self._trainer.on_device():
            loss = self._step(*batch.data)
        self._trainer.synchronize()
        return StepOutcome(float(loss), self._trainer.exchange_s)

    def digest(self) -> str:
        return digest([self.generator, self.discriminator])

    def close(self) -> None:
        """Nothing is held beyond the process."""


def _cross_entropy(logits: Any, label: Any) -> Any:
    logits = tf.cast(logits, tf.float32)
    labels = tf.fill(tf.shape(logits), label)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))
