"""ResNet34, ResNet50 and DenseNet121 in Keras 3 on TensorFlow, untrained.

ResNet50 and DenseNet121 are those of ``keras.applications``, ResNet34 our own. Sigmoid or softmax are part of the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from harness.pipelines.interface import BatchForm
from harness.runtime.interfaces import RunContext
from harness.workloads.classifier_tf import Classifier
from harness.workloads.resnet_imagenet.resnet34_tf import resnet34
from harness.workloads.resnet_imagenet.settings import PIXELS, Settings, settings


def _resnet34(form: BatchForm) -> keras.Model:
    return resnet34(form.height, form.width, form.channels, form.classes)


def _application(make: Callable[..., keras.Model]) -> Callable[[BatchForm], keras.Model]:
    def build_model(form: BatchForm) -> keras.Model:
        shape = (form.height, form.width, form.channels)
        return make(weights=None, input_shape=shape, classes=form.classes, classifier_activation=None)

    return build_model


MODELS: dict[str, Callable[[BatchForm], keras.Model]] = {
    "resnet34": _resnet34,
    "resnet50": _application(keras.applications.ResNet50),
    "densenet121": _application(keras.applications.DenseNet121),
}


def _adam(chosen: Settings) -> Any:
    return keras.optimizers.Adam(chosen.learning_rate)


def _sgd(chosen: Settings) -> Any:
    return keras.optimizers.SGD(chosen.learning_rate, momentum=chosen.momentum)


OPTIMIZERS: dict[str, Callable[[Settings], Any]] = {"adam": _adam, "sgd": _sgd}


def build(context: RunContext) -> Classifier:
    """The point's model in training on one rank."""
    chosen = settings(context.axes, MODELS, OPTIMIZERS)
    return Classifier(
        context,
        lambda: MODELS[chosen.model](chosen.form),
        lambda: OPTIMIZERS[chosen.optimizer](chosen),
        pixels=PIXELS,
        details=chosen.details(),
    )
