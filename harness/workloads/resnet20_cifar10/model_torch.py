"""ResNet20 v1 on CIFAR-10 in torch: the Keras model of ``model_tf`` layer by layer.

Equal: layers, biases, padding, initialisers, batch normalisation's epsilon and momentum, L2 of 1e-4 on the
convolutions' kernels, Adam's settings, the loss. Given the same weights the two give the same outputs (tested).
Different: batch normalisation's running variance is the unbiased one (``keras_batch_norm``), and where Adam adds
epsilon (``adam``).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.runtime.interfaces import RunContext
from harness.workloads.classifier_torch import Classifier
from harness.workloads.training_torch import SameConv, adam, keras_batch_norm

CLASSES = 10
BLOCKS = 3
L2 = 1e-4
LEARNING_RATE = 1e-3
# a normal distribution cut at two standard deviations is narrower by this factor, which Keras makes up for
_TRUNCATED_STD = 0.87962566103423978


def build(context: RunContext) -> Session:
    return Session(context)


class Block(nn.Module):
    """Two conv-BN, added to the input; the first block of a later stack halves the size, its shortcut a 1×1 conv."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.first = SameConv(inputs, outputs, stride=stride)
        self.first_norm = keras_batch_norm(outputs)
        self.second = SameConv(outputs, outputs)
        self.second_norm = keras_batch_norm(outputs)
        self.shortcut = SameConv(inputs, outputs, kernel=1, stride=stride) if stride > 1 else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        residual = torch.relu(self.first_norm(self.first(images)))
        residual = self.second_norm(self.second(residual))
        return torch.relu(self.shortcut(images) + residual)


class ResNet20(nn.Module):
    """``(b, 3, 32, 32)`` → logits ``(b, 10)``."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(SameConv(3, 16), keras_batch_norm(16), nn.ReLU())
        channels = [16] * BLOCKS + [32] * BLOCKS + [64] * BLOCKS
        self.blocks = nn.Sequential(
            *(
                Block(inputs, outputs, 1 if inputs == outputs else 2)
                for inputs, outputs in zip([16, *channels], channels, strict=False)
            )
        )
        self.pool = nn.AvgPool2d(8)
        self.head = nn.Linear(64, CLASSES)
        self.apply(_he_normal)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.pool(self.blocks(self.stem(images))).flatten(1))
        return logits


def _he_normal(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d | nn.Linear):
        std = (2 / module.weight[0].numel()) ** 0.5 / _TRUNCATED_STD
        nn.init.trunc_normal_(module.weight, std=std, a=-2 * std, b=2 * std)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


class Session(Classifier):
    """ResNet20 in training on one rank."""

    def __init__(self, context: RunContext):
        super().__init__(context, "resnet20_v1", ResNet20(), _adam)
        self._kernels = [m.weight for m in self.model.modules() if isinstance(m, nn.Conv2d)]

    def penalty(self) -> Tensor:
        return L2 * nn.utils.get_total_norm(self._kernels).square()


def _adam(model: nn.Module, device: torch.device) -> torch.optim.Adam:
    kernels = [m.weight for m in model.modules() if isinstance(m, nn.Conv2d)]
    known = {id(k) for k in kernels}
    rest = [p for p in model.parameters() if id(p) not in known]
    # the gradient of L2 × |w|² is 2 × L2 × w, which is what weight_decay adds
    return adam([{"params": kernels, "weight_decay": 2 * L2}, {"params": rest}], device, lr=LEARNING_RATE)
