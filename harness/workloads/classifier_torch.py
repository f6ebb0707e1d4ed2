"""A torch classifier of images in training: what the sessions of such workloads share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from harness.errors import UserError
from harness.pipelines.interface import batch_form
from harness.runtime.interfaces import Batch, ModelFacts, RunContext, StepOutcome
from harness.workloads.auroc import KEPT_STEPS, quality
from harness.workloads.pixels import Pixels
from harness.workloads.training_torch import Trainer, count, digest
from harness.workloads.validation import Judgement, judge, kept_samples

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
        self._context, self._remembered = context, list[dict[str, Tensor]]()

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

    def remember(self) -> None:
        """Keep the parameters and running averages as they are now, in the host's memory."""
        self._remembered.append({name: t.detach().to("cpu", copy=True) for name, t in self._plain.state_dict().items()})

    def judgements(self) -> Iterator[Judgement]:
        """How the model did when it was remembered, each time; it is afterwards as it was before."""
        kept, model = kept_samples(self._context), self._plain
        now = {name: t.detach().clone() for name, t in model.state_dict().items()}
        model.eval()
        for state in self._remembered:
            model.load_state_dict(state)
            yield judge(self._predict, kept)
        model.load_state_dict(now)
        model.train()

    @property
    def _plain(self) -> nn.Module:
        """The model without what averages its gradients, whose forward pass other ranks would have to join."""
        return self.model.module if isinstance(self.model, DistributedDataParallel) else self.model

    def _predict(self, images: NDArray[np.float32]) -> NDArray[Any]:
        with torch.no_grad(), self._trainer.autocast():
            logits: Tensor = self._plain(self._trainer.images(torch.from_numpy(images).permute(0, 3, 1, 2)))
        answers: NDArray[Any] = logits.float().cpu().numpy()
        return answers

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
