"""DCGAN on MNIST in torch: the Keras models of ``model_tf`` layer by layer, and the same three updates a step.

Equal: layers, padding, initialisers (Glorot), batch normalisation's epsilon and momentum, Adam's settings. Given the
same weights, latent vectors and no dropout, the two give the same outputs and losses (tested).
Different: flattened features are ordered channel, row, column; batch normalisation's running variance is the unbiased
one (``keras_batch_norm``); where Adam adds epsilon (``adam``); and the random numbers themselves.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from harness.runtime.interfaces import Batch, ModelFacts, RunContext, StepOutcome
from harness.workloads.training_torch import SameConv, Trainer, adam, count, digest, glorot_uniform, keras_batch_norm

LATENT = 100
LEARNING_RATE = 2e-4
BETAS = (0.5, 0.999)


def build(context: RunContext) -> Session:
    return Session(context)


class Generator(nn.Module):
    """Latent ``(b, 100)`` → images ``(b, 1, 28, 28)`` in [-1, 1]."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(LATENT, 7 * 7 * 128)
        self.body = nn.Sequential(
            nn.Upsample(scale_factor=2),
            SameConv(128, 128),
            keras_batch_norm(128, 0.8),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
            SameConv(128, 64),
            keras_batch_norm(64, 0.8),
            nn.ReLU(),
            SameConv(64, 1),
        )
        self.apply(glorot_uniform)

    def forward(self, latent: Tensor) -> Tensor:
        maps = torch.relu(self.dense(latent)).view(-1, 128, 7, 7)
        return torch.tanh(self.body(maps).float())


class Discriminator(nn.Module):
    """Images ``(b, 1, 28, 28)`` → logits ``(b, 1)``, high for real."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            SameConv(1, 32, stride=2),
            *_leaky_dropout(),
            SameConv(32, 64, stride=2),
            nn.ZeroPad2d((0, 1, 0, 1)),
            keras_batch_norm(64, 0.8),
            *_leaky_dropout(),
            SameConv(64, 128, stride=2),
            keras_batch_norm(128, 0.8),
            *_leaky_dropout(),
            SameConv(128, 256),
            keras_batch_norm(256, 0.8),
            *_leaky_dropout(),
        )
        self.head = nn.Linear(4 * 4 * 256, 1)
        self.apply(glorot_uniform)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(images).flatten(1))
        return logits


def _leaky_dropout() -> tuple[nn.Module, nn.Module]:
    return nn.LeakyReLU(0.2), nn.Dropout(0.25)


class Session:
    """Generator and discriminator in training on one rank. The loss is the discriminator's mean over its two halves."""

    def __init__(self, context: RunContext):
        self._trainer = trainer = Trainer(context)
        self.generator = trainer.place(Generator())
        self.discriminator = trainer.place(Discriminator())
        self._generator_adam, self._discriminator_adam = (
            adam(module.parameters(), trainer.device, lr=LEARNING_RATE, betas=BETAS)
            for module in (self.generator, self.discriminator)
        )

    def facts(self) -> ModelFacts:
        modules = {"generator": self.generator, "discriminator": self.discriminator}
        parameters, trainable = count(modules.values())
        return ModelFacts("dcgan", parameters, trainable, {name: count([m])[0] for name, m in modules.items()})

    def to_device(self, batch: Batch) -> Batch:
        images = self._trainer.images(batch.data[0])
        self._trainer.synchronize()
        return replace(batch, data=(images,))

    def step(self, batch: Batch) -> StepOutcome:
        (images,) = batch.data
        self._trainer.exchange_s = 0.0
        latent = torch.randn(len(images), LATENT, device=images.device)
        real = self._judge(images, 1.0)
        fake = self._judge(self._imagine(latent), 0.0)
        self._fool(latent)
        self._trainer.synchronize()
        return StepOutcome(float((real + fake) / 2), self._trainer.exchange_s)

    def _imagine(self, latent: Tensor) -> Tensor:
        self.generator.eval()
        with torch.no_grad(), self._trainer.autocast():
            images: Tensor = self.generator(latent)
        self.generator.train()
        return images

    def _judge(self, images: Tensor, label: float) -> Tensor:
        with self._trainer.autocast():
            loss = _cross_entropy(self.discriminator(images), label)
        self._trainer.update(loss, self._discriminator_adam)
        return loss.detach()

    def _fool(self, latent: Tensor) -> None:
        with self._trainer.autocast(), self._trainer.passing(self.discriminator):
            images = self.generator(latent)
            loss = _cross_entropy(self.discriminator(images), 1.0)
        self._trainer.update(loss, self._generator_adam)

    def digest(self) -> str:
        return digest([self.generator, self.discriminator])

    def close(self) -> None:
        """Nothing is held beyond the process."""


def _cross_entropy(logits: Tensor, label: float) -> Tensor:
    return nn.functional.binary_cross_entropy_with_logits(logits.float(), torch.full_like(logits.float(), label))
