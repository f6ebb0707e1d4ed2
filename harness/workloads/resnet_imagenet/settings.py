"""What both frameworks' versions share: the choices of a point, pixel statistics; framework-free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.catalog import lookup
from harness.errors import UserError
from harness.model.axes import Axes
from harness.pipelines.interface import IMAGE_SIZE, BatchForm, batch_form, option
from harness.workloads.pixels import Pixels

#: mean and standard deviation of ImageNet's training pixels over 255, as torchvision's reference scripts use them
PIXELS = Pixels(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))

# the models halve the image five times
SMALLEST = 32


@dataclass(frozen=True)
class Settings:
    """One point's choices: ``adam`` or ``sgd``, and what is fed to the model."""

    model: str
    form: BatchForm
    optimizer: str
    learning_rate: float
    momentum: float

    def details(self) -> dict[str, Any]:
        """For the ``model`` event."""
        chosen = {
            "optimizer": self.optimizer,
            "learning_rate": self.learning_rate,
            "image_size": self.form.height,
            "outputs": self.form.classes,
            "loss": "binary_crossentropy" if self.form.multi_label else "categorical_crossentropy",
        }
        return chosen | {"momentum": self.momentum} if self.optimizer == "sgd" else chosen


def settings(axes: Axes, models: Mapping[str, Any], optimizers: Mapping[str, Any]) -> Settings:
    """The choices of ``axes``; ``models`` and ``optimizers`` are the framework's own, by name.

    Raises:
        CatalogError: a model or optimizer that is not among them.
        UserError: images too small for the models.
    """
    form = batch_form(axes)
    if min(form.height, form.width) < SMALLEST:
        raise UserError(f"options.{IMAGE_SIZE} is {form.height}; {axes.model} takes {SMALLEST} pixels or more")
    lookup(models, axes.model or "", "model")
    optimizer = option(axes, "optimizer")
    lookup(optimizers, optimizer, "optimizer")
    return Settings(axes.model or "", form, optimizer, option(axes, "learning_rate"), option(axes, "momentum"))
