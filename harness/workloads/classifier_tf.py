"""A Keras classifier of images in training on TensorFlow: what the sessions of such workloads share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import keras
import tensorflow as tf

from harness.errors import UserError
from harness.pipelines.interface import batch_form
from harness.runtime.interfaces import Batch, ModelFacts, RunContext, StepOutcome
from harness.workloads.auroc import KEPT_STEPS, quality
from harness.workloads.pixels import Pixels
from harness.workloads.training_tf import Trainer, count, digest
from harness.workloads.validation import Judgement, judge, kept_samples


class Classifier:
    """One model, one loss, one optimizer, on one rank.

    The loss is the softmax's cross-entropy with class labels, and the mean sigmoid's with several labels per image,
    plus the model's own penalties. Float images are taken as they are; pixels (uint8) are scaled by ``pixels`` on the
    device, as part of the step. ``make_model`` and ``make_optimizer`` are called with the device in place.
    """

    def __init__(
        self,
        context: RunContext,
        make_model: Callable[[], keras.Model],
        make_optimizer: Callable[[], keras.optimizers.Optimizer],
        *,
        pixels: Pixels | None = None,
        details: Mapping[str, Any] | None = None,
    ):
        form = batch_form(context.axes)
        self._pixels = pixels
        self._details = dict(details or {})
        self._trainer = trainer = Trainer(context)
        self._answers: deque[tuple[Any, Any]] = deque(maxlen=KEPT_STEPS)
        self._context, self._remembered = context, list[list[Any]]()
        with trainer.on_device():
            self.model = make_model()
            trainer.start_equal([self.model])
            optimizer = trainer.optimizer(make_optimizer())
            # a step's answers leave the graph by way of this variable
            shape = (context.axes.batch_size, form.classes)
            self._logits = tf.Variable(tf.zeros(shape), trainable=False) if form.multi_label else None
            update = trainer.update(self._loss, self.model.trainable_variables, optimizer)
        self._step = trainer.step_function(update)

    def facts(self) -> ModelFacts:
        parameters, trainable = count([self.model])
        return ModelFacts(self.model.name, parameters, trainable, self._trainer.details() | self._details)

    def to_device(self, batch: Batch) -> Batch:
        return replace(batch, data=self._trainer.tensors(batch.data))

    def step(self, batch: Batch) -> StepOutcome:
        self._trainer.exchange_s = 0.0
        with self._trainer.on_device():
            loss = self._step(*batch.data)
            if self._logits is not None:
                self._answers.append((tf.identity(self._logits), batch.data[1]))
        self._trainer.synchronize()
        return StepOutcome(float(loss), self._trainer.exchange_s)

    def quality(self) -> dict[str, Any]:
        """The area under the ROC of the last steps, where images have several labels."""
        return quality([(logits.numpy(), labels.numpy()) for logits, labels in self._answers])

    def remember(self) -> None:
        """Keep the parameters and running averages as they are now, in the host's memory."""
        self._remembered.append([variable.numpy() for variable in self.model.variables])

    def judgements(self) -> Iterator[Judgement]:
        """How the model did when it was remembered, each time; it is afterwards as it was before."""
        kept, now = kept_samples(self._context), [variable.numpy() for variable in self.model.variables]
        answer = tf.function(
            lambda images: tf.cast(self.model(images, training=False), tf.float32), reduce_retracing=True
        )
        for values in self._remembered:
            self._assign(values)
            with self._trainer.on_device():
                judgement = judge(lambda images: answer(tf.constant(images)).numpy(), kept)
            yield judgement
        self._assign(now)

    def _assign(self, values: list[Any]) -> None:
        for variable, value in zip(self.model.variables, values, strict=True):
            variable.assign(value)

    def _loss(self, images: Any, labels: Any) -> Any:
        logits = tf.cast(self.model(self._scaled(images), training=True), tf.float32)
        if self._logits is None:
            entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        else:
            self._logits.assign(tf.stop_gradient(logits))
            entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
        return tf.add_n([tf.reduce_mean(entropy), *self.model.losses])

    def _scaled(self, images: Any) -> Any:
        if images.dtype.is_floating:
            return images
        if self._pixels is None:
            raise UserError(f"{self.model.name} takes samples that the pipeline has prepared; this one delivers pixels")
        return tf.cast(images, tf.float32) * tf.constant(self._pixels.scale) + tf.constant(self._pixels.offset)

    def digest(self) -> str:
        return digest([self.model])

    def close(self) -> None:
        """Nothing is held beyond the process."""
