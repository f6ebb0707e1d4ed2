"""ResNet34, ResNet50 and DenseNet121 of torchvision, untrained.

They differ from the Keras models of ``model_tf``, and so do their parameter counts:

- ResNet34: convolutions have no biases, and the shortcuts' 1×1 convolutions are followed by batch normalisation:
  21,814,696 parameters (21,797,672 trainable) with 1000 outputs, against 21,819,560.
- ResNet50: no biases, 25,610,152 parameters against 25,636,712 with 1000 outputs; a stage's stride is that of its
  first 3×3 convolution ("v1.5"), where ``keras.applications`` has it in the 1×1 convolution before, which makes
  torchvision's the costlier one by about 6 % of the multiplications.
- All: padding is symmetric; batch normalisation's epsilon is 1e-5 and its momentum 0.1; kernels start as He's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from harness.pipelines.torchvision_compat import torchvision
from harness.runtime.interfaces import RunContext
from harness.workloads.classifier_torch import Classifier
from harness.workloads.resnet_imagenet.settings import PIXELS, Settings, settings
from harness.workloads.training_torch import adam

MODELS: dict[str, Callable[..., nn.Module]] = {
    "resnet34": torchvision.models.resnet34,
    "resnet50": torchvision.models.resnet50,
    "densenet121": torchvision.models.densenet121,
}


def _adam(parameters: Any, device: torch.device, chosen: Settings) -> torch.optim.Optimizer:
    return adam(parameters, device, lr=chosen.learning_rate)


def _sgd(parameters: Any, device: torch.device, chosen: Settings) -> torch.optim.Optimizer:
    fused = device.type in ("cpu", "cuda")
    return torch.optim.SGD(parameters, chosen.learning_rate, momentum=chosen.momentum, fused=fused)


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adam": _adam, "sgd": _sgd}


def build(context: RunContext) -> Classifier:
    """The point's model in training on one rank."""
    chosen = settings(context.axes, MODELS, OPTIMIZERS)
    return Classifier(
        context,
        chosen.model,
        MODELS[chosen.model](num_classes=chosen.form.classes),
        lambda model, device: OPTIMIZERS[chosen.optimizer](model.parameters(), device, chosen),
        pixels=PIXELS,
        details=chosen.details(),
    )
