"""The torch models are the Keras models: with the same weights, the same outputs and the same training steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
torch = pytest.importorskip("torch")

pytestmark = pytest.mark.framework
TOLERANCE = 1e-4


def copy_weights(keras_layers: Sequence[Any], modules: Sequence[Any]) -> None:
    """From Keras layers to torch modules, pairwise."""
    sources = [layer for layer in keras_layers if layer.weights and "seed" not in layer.weights[0].path]
    targets = [m for m in modules if isinstance(m, torch.nn.Conv2d | torch.nn.Linear | torch.nn.BatchNorm2d)]
    for source, target in zip(sources, targets, strict=True):
        values = [torch.from_numpy(np.array(w)) for w in source.get_weights()]
        with torch.no_grad():
            if isinstance(target, torch.nn.BatchNorm2d):
                own = [target.weight, target.bias, target.running_mean, target.running_var]
            else:
                own = [target.weight, target.bias]
                values = [in_torch_layout(source, value) for value in values]
            for tensor, value in zip(own, values, strict=True):
                tensor.copy_(value)


def in_torch_layout(layer: Any, value: Any) -> Any:
    """Kernels (h, w, in, out) → (out, in, h, w), (in, out) → (out, in), flattened features channel first."""
    if value.ndim == 4:
        return value.permute(3, 2, 0, 1)
    if getattr(layer, "units", 0) == 7 * 7 * 128:
        value = value.reshape(-1, 7, 7, 128).permute(0, 3, 1, 2).reshape(value.shape)
    elif value.ndim == 2 and layer.input.shape[-1] == 4 * 4 * 256:
        value = value.view(4, 4, 256).permute(2, 0, 1).reshape(-1, 1)
    return value.T if value.ndim == 2 else value


def scramble(models: Sequence[Any]) -> None:
    """Batch normalisation and biases start at 0 and 1, where mistakes would not show."""
    random = np.random.default_rng(3)
    for model in models:
        for variable in model.variables:
            if variable.dtype == "float32" and len(variable.shape) == 1:
                variable.assign(random.uniform(0.5, 1.5, variable.shape))


def in_torch_order(model: Any) -> list[Any]:
    """Keras's layers in the order of the torch modules: a block's shortcut stands behind its second normalisation."""
    layers = [layer for layer in model.layers if layer.weights]
    for place, layer in enumerate(layers):
        if layer.__class__.__name__ == "Conv2D" and layer.kernel_size == (1, 1):
            following = layers[place + 1]
            if following.__class__.__name__ == "BatchNormalization":
                layers[place], layers[place + 1] = following, layer
    return layers


def no_dropout(session: Any) -> None:
    for layer in getattr(session.discriminator, "layers", []):
        if layer.__class__.__name__ == "Dropout":
            layer.rate = 0.0
    if isinstance(session.discriminator, torch.nn.Module):
        for module in session.discriminator.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0


def nchw(images: np.ndarray) -> Any:
    return torch.from_numpy(images).permute(0, 3, 1, 2)


@pytest.mark.parametrize("training", [False, True])
def test_resnet20_outputs(maker, training):
    ours = maker.session(maker.context("resnet20_cifar10", "torch")).model.train(training)
    theirs = maker.session(maker.context("resnet20_cifar10", "tensorflow")).model
    scramble([theirs])
    copy_weights(in_torch_order(theirs), list(ours.modules()))
    images = np.random.default_rng(0).normal(size=(8, 32, 32, 3)).astype(np.float32)
    expected = theirs(images, training=training).numpy()
    found = ours(nchw(images)).detach().numpy()
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE * np.abs(expected).max())


@pytest.mark.parametrize("training", [False, True])
def test_dcgan_outputs(maker, training):
    ours = maker.session(maker.context("dcgan_mnist", "torch"))
    theirs = maker.session(maker.context("dcgan_mnist", "tensorflow"))
    no_dropout(ours)
    no_dropout(theirs)
    scramble([theirs.generator, theirs.discriminator])
    copy_weights(theirs.generator.layers, list(ours.generator.train(training).modules()))
    copy_weights(theirs.discriminator.layers, list(ours.discriminator.train(training).modules()))
    latent = np.random.default_rng(0).normal(size=(8, 100)).astype(np.float32)
    images = theirs.generator(latent, training=training).numpy()
    found = ours.generator(torch.from_numpy(latent)).detach().permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(found, images, atol=TOLERANCE)
    logits = theirs.discriminator(images, training=training).numpy()
    found = ours.discriminator(nchw(images)).detach().numpy()
    np.testing.assert_allclose(found, logits, rtol=TOLERANCE, atol=TOLERANCE * np.abs(logits).max())


def test_resnet20_steps(maker, feed):
    """Forward, backward, L2, Adam and the reported loss agree over several steps."""
    contexts = [maker.context("resnet20_cifar10", name, batch_size=16) for name in ("torch", "tensorflow")]
    ours, theirs = (maker.session(context) for context in contexts)
    copy_weights(in_torch_order(theirs.model), list(ours.model.modules()))
    losses = [
        [session.step(session.to_device(batch(i))).loss for i in range(4)]
        for session, batch in zip((ours, theirs), (feed(context) for context in contexts), strict=True)
    ]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-2)


def test_dcgan_steps(maker, feed, monkeypatch):
    """All three updates agree over several steps, given the same latent vectors and no dropout."""
    contexts = [maker.context("dcgan_mnist", name, batch_size=16) for name in ("torch", "tensorflow")]
    ours, theirs = (maker.session(context) for context in contexts)
    no_dropout(ours)
    no_dropout(theirs)
    copy_weights(theirs.generator.layers, list(ours.generator.modules()))
    copy_weights(theirs.discriminator.layers, list(ours.discriminator.modules()))
    latent = np.random.default_rng(0).normal(size=(16, 100)).astype(np.float32)
    monkeypatch.setattr("torch.randn", lambda *shape, device: torch.from_numpy(latent))
    monkeypatch.setattr("keras.random.normal", lambda *args, **named: latent)
    losses = [
        [session.step(session.to_device(batch(i))).loss for i in range(4)]
        for session, batch in zip((ours, theirs), (feed(context) for context in contexts), strict=True)
    ]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-2)
