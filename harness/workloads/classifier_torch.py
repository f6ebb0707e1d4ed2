"""A torch classifier of images in training: what the sessions of such workloads share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from harness.errors import UserError
from harness.pipelines.interface import batch_form
from harness.runtime.interfaces import Batch, ModelFacts, RunContext, StepOutcome
from harness.workloads.auroc import KEPT_STEPS, quality
from harness.workloads.pixels import Pixels
from harness.workloads.training_torch import Trainer, count, digest

MakeOptimizer = Callable[[nn.Module, torch.device], torch.optim.Optimizer]


class Classifier:
    """One model, one loss, one optimizer, on one rank.

    The loss is the softmax's cross-entropy with class labels, and the mean sigmoid's with several labels per image.
    Float images are taken as they are; pixels (uint8) are scaled by ``pixels`` on the device, as part of the step.
    """

    def __init__(
        self,
        context: RunContext,
        name: str,
        model: nn.Module,
        make_optimizer: MakeOptimizer,
        *,
        pixels: Pixels | None = None,
        details: Mapping[str, Any] | None = None,
    ):
        self._name = name
        self._details = dict(details or {})
        self._multi_label = batch_form(context.axes).multi_label
        self._trainer = trainer = Trainer(context)
        self.model = trainer.place(model)
        self._optimizer = make_optimizer(self.model, trainer.device)
        self._scaling = None if pixels is None else [_by_channel(v, trainer) for v in (pixels.scale, pixels.offset)]
        self._answers: deque[tuple[Tensor, Tensor]] = deque(maxlen=KEPT_STEPS)

    def facts(self) -> ModelFacts:
        parameters, trainable = count([self.model])
        return ModelFacts(self._name, parameters, trainable, self._trainer.details() | self._details)

    def to_device(self, batch: Batch) -> Batch:
        images, labels = batch.data
        data = self._trainer.images(images), labels.to(self._trainer.device, non_blocking=True)
        self._trainer.synchronize()
        return replace(batch, data=data)

    def step(self, batch: Batch) -> StepOutcome:
        images, labels = batch.data
        trainer = self._trainer
        trainer.exchange_s = 0.0
        with torch.no_grad():
            penalty = self.penalty()
        with trainer.autocast():
            logits = self.model(self._scaled(images)).float()
            loss = self._loss(logits, labels)
        trainer.update(loss, self._optimizer)
        trainer.synchronize()
        if self._multi_label:
            self._answers.append((logits.detach(), labels))
        return StepOutcome(float(loss.detach() + penalty), trainer.exchange_s)

    def penalty(self) -> Tensor | float:
        """What regularisation adds to the loss that is reported; its gradient is the optimizer's ``weight_decay``."""
        return 0.0

    def quality(self) -> dict[str, Any]:
        """The area under the ROC of the last steps, where images have several labels."""
        return quality([(logits.cpu().numpy(), labels.cpu().numpy()) for logits, labels in self._answers])

    def _scaled(self, images: Tensor) -> Tensor:
        if images.is_floating_point():
            return images
        if self._scaling is None:
            raise UserError(f"{self._name} takes samples that the pipeline has prepared; this one delivers pixels")
        scale, offset = self._scaling
        return torch.addcmul(offset, images.float(), scale)

    def _loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self._multi_label:
            return nn.functional.binary_cross_entropy_with_logits(logits, labels)
        return nn.functional.cross_entropy(logits, labels)

    def digest(self) -> str:
        return digest([self.model])

    def close(self) -> None:
        """Nothing is held beyond the process."""


def _by_channel(values: tuple[float, ...], trainer: Trainer) -> Tensor:
    return torch.tensor(values, dtype=torch.float32, device=trainer.device).view(1, -1, 1, 1)
