"""A LeNet-style network on MNIST in torch: the Keras model of ``model_tf`` layer by layer.

Equal: layers, padding, initialisers, Adam's settings, the loss. Given the same weights the two give the same outputs
(tested). Different: flattened features are ordered channel, row, column; where Adam adds epsilon (``adam``).
"""

from __future__ import annotations

from torch import Tensor, nn

from harness.runtime.interfaces import RunContext
from harness.workloads.classifier_torch import Classifier
from harness.workloads.lenet_mnist.recipe import PIXELS
from harness.workloads.training_torch import adam, glorot_uniform

CLASSES = 10
HIDDEN = 1024
LEARNING_RATE = 1e-4


class LeNet(nn.Module):
    """``(b, 1, 28, 28)`` → logits ``(b, 10)``."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 32, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(7 * 7 * 64, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, CLASSES),
        )
        self.apply(glorot_uniform)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.body(images)
        return logits


def build(context: RunContext) -> Classifier:
    """The network in training on one rank."""
    return Classifier(
        context,
        "lenet",
        LeNet(),
        lambda model, device: adam(model.parameters(), device, lr=LEARNING_RATE),
        pixels=PIXELS,
        details={"optimizer": "adam", "learning_rate": LEARNING_RATE},
    )
