"""What the TensorFlow workloads share: updates whose gradients are averaged over ranks, equal starts, digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from harness.runtime.interfaces import RunContext, TensorExchange


class Trainer:
    """One rank's part in training: compiles updates, averages their gradients over ranks, on one device.

    With more than one rank and an exchange, every update averages its gradients over the ranks in one message; the
    seconds that took, copies to and from the host included, add up in :attr:`exchange_s`. An exchange of tensors is
    part of the step's graph, where its time is not separable, unless XLA compiles that. TensorFlow's images are
    channels-last whatever the axis says.
    """

    def __init__(self, context: RunContext):
        self.exchange_s = 0.0
        self._axes = context.axes
        self._device = context.device
        self._clock = context.clock
        self._exchange = context.exchange if context.ranks.world > 1 and context.exchange.name != "none" else None
        self._tensor_exchange = self._exchange if isinstance(self._exchange, TensorExchange) else None
        # XLA has no kernel for an exchange: the step is then computed, averaged and applied in three parts
        self._in_graph = self._tensor_exchange is not None and not self._axes.compile

    def on_device(self) -> Any:
        """The context in which models are built and run."""
        return tf.device(f"/{self._device}")

    def function(self, body: Callable[..., Any]) -> Any:
        """``body`` as a graph, compiled by XLA where the axis says so."""
        return tf.function(body, jit_compile=self._axes.compile)

    def step_function(self, body: Callable[..., Any]) -> Any:
        """A whole step as one graph; with an exchange that is no part of one, its parts are graphs and it is Python."""
        return body if self._exchange is not None and not self._in_graph else self.function(body)

    def details(self) -> dict[str, Any]:
        """How the model is computed, for its facts."""
        return {"precision": self._axes.precision, "layout": "channels_last", "compiled": self._axes.compile}

    def tensors(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """numpy arrays on the device, when the copy is done."""
        with self.on_device():
            copied = tuple(tf.identity(array) for array in arrays)
        self.synchronize()
        return copied

    def start_equal(self, models: Iterable[keras.Model]) -> None:
        """Give every rank the weights of rank 0, batch normalisation's running averages among them.

        These are each rank's own afterwards; the states of random generators always were.
        """
        if self._exchange is None:
            return
        variables = [v for m in models for v in m.variables if v.dtype == "float32"]
        for variable, value in zip(variables, self._exchange.broadcast([v.numpy() for v in variables]), strict=True):
            variable.assign(value)

    def optimizer(self, optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
        """The optimizer, with loss scaling where fp16 gradients would underflow without."""
        scaled = self._axes.precision == "fp16"
        return keras.optimizers.LossScaleOptimizer(optimizer) if scaled else optimizer

    def update(
        self, loss: Callable[..., Any], variables: Sequence[Any], optimizer: keras.optimizers.Optimizer
    ) -> Callable[..., Any]:
        """A function of ``loss``'s arguments: applies the gradients to ``variables``, returns the loss."""
        optimizer.build(variables)

        def differentiate(*inputs: Any) -> tuple[Any, list[Any]]:
            with tf.GradientTape() as tape:
                value = loss(*inputs)
                scaled = optimizer.scale_loss(value)
            return value, tape.gradient(scaled, variables)

        def local(*inputs: Any) -> Any:
            value, gradients = differentiate(*inputs)
            if self._tensor_exchange is not None:
                gradients = self._tensor_exchange.average_tensors(gradients)
            optimizer.apply(gradients, variables)
            return value

        if self._exchange is None or self._in_graph:
            return local
        return self._exchanging(differentiate, variables, optimizer)

    def _exchanging(
        self, differentiate: Callable[..., Any], variables: Sequence[Any], optimizer: keras.optimizers.Optimizer
    ) -> Callable[..., Any]:
        sizes = [int(np.prod(v.shape)) for v in variables]

        def flatten(*inputs: Any) -> tuple[Any, Any]:
            value, gradients = differentiate(*inputs)
            return value, tf.concat([tf.reshape(g, [-1]) for g in gradients], 0)

        def apply(flat: Any) -> None:
            parts = tf.split(flat, sizes)
            optimizer.apply([tf.reshape(p, v.shape) for p, v in zip(parts, variables, strict=True)], variables)

        compute, finish = self.function(flatten), self.function(apply)

        def update(*inputs: Any) -> Any:
            value, flat = compute(*inputs)
            finish(self._average(flat))
            return value

        return update

    def _average(self, flat: Any) -> Any:
        assert self._exchange is not None
        self.synchronize()
        begin_s = self._clock.now()
        if self._tensor_exchange is not None:
            [averaged] = self._tensor_exchange.average_tensors([flat])
            self.synchronize()
        else:
            [mean] = self._exchange.average([flat.numpy()])
            averaged = tf.constant(mean)
        self.exchange_s += self._clock.now() - begin_s
        return averaged

    def synchronize(self) -> None:
        """Return when the device has done all it was given; on a CPU a graph returns when it has run."""
        if self._device != "cpu":
            tf.test.experimental.sync_devices()


def count(models: Iterable[keras.Model]) -> tuple[int, int]:
    """``(parameters, trainable)`` as Keras's summary counts them; states of random generators are not parameters."""
    models = list(models)
    return (
        sum(m.count_params() for m in models),
        sum(int(np.prod(v.shape)) for m in models for v in m.trainable_variables),
    )


def digest(models: Iterable[keras.Model]) -> str:
    """SHA-256 over the trainable parameters, in their order."""
    found = hashlib.sha256()
    for model in models:
        for variable in model.trainable_variables:
            found.update(np.ascontiguousarray(variable.numpy()).data)
    return found.hexdigest()
