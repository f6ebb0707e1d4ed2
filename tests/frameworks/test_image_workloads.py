"""resnet_imagenet and lenet_mnist: parameter counts, steps at a small image size, pixels, options, quality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from frameworks_support import in_framework, pixel_feed

from harness.errors import HarnessError, UserError
from harness.runtime.interfaces import Batch

pytest.importorskip("tensorflow")
pytest.importorskip("torch")

pytestmark = pytest.mark.framework
each_framework = pytest.mark.parametrize("framework", ("tensorflow", "torch"))
SMALL = {"image_size": 32}


def photographs(maker: Any, framework: str, model: str, dataset: str = "imagenet", **options: Any) -> Any:
    options = SMALL | options
    name = f"synthetic:{dataset}"
    return maker.context("resnet_imagenet", framework, model=model, dataset=name, batch_size=4, options=options)


# model, data set, outputs → (parameters, trainable)
COUNTS = {
    ("tensorflow", "resnet34", "imagenet", 1000): (21_819_560, 21_804_328),
    ("tensorflow", "resnet50", "caltech256", 257): (24_114_305, 24_061_185),
    ("tensorflow", "densenet121", "chestxray14", 14): (7_051_854, 6_968_206),
    ("torch", "resnet34", "imagenet", 1000): (21_814_696, 21_797_672),
    ("torch", "resnet50", "caltech256", 257): (24_087_745, 24_034_625),
    ("torch", "densenet121", "chestxray14", 14): (7_051_854, 6_968_206),
}


@pytest.mark.parametrize(("case", "counts"), COUNTS.items(), ids=["-".join(map(str, case[:3])) for case in COUNTS])
def test_two_steps(maker, case, counts):
    """Counts, a first loss near that of guessing, finite losses, parameters that move; AUROC with several labels."""
    framework, model, dataset, outputs = case
    context = photographs(maker, framework, model, dataset)
    session = maker.session(context)
    facts = session.facts()
    assert (facts.name, facts.parameters, facts.trainable) == (model, *counts)
    assert facts.details["outputs"] == outputs
    assert facts.details["image_size"] == 32
    batch, before = session.to_device(pixel_feed(context)(0)), session.digest()
    losses = [session.step(batch).loss for _ in range(2)]
    guessing = np.log(2) if dataset == "chestxray14" else np.log(outputs)
    assert 0.5 * guessing < losses[0] < 2 * guessing
    assert np.isfinite(losses[1])
    assert session.digest() != before
    found = session.quality()
    assert found == {} if dataset != "chestxray14" else (found["samples"], len(found["auroc_by_class"])) == (8, 14)


@each_framework
def test_lenet_learns(maker, feed, framework):
    context = maker.context("lenet_mnist", framework, batch_size=64)
    session = maker.session(context)
    assert session.facts().parameters == session.facts().trainable == 3_274_634
    batch = feed(context)
    losses = [session.step(session.to_device(batch(i))).loss for i in range(45)]
    assert losses[0] == pytest.approx(np.log(10), rel=0.2)
    assert np.mean(losses[-3:]) < 0.5 * losses[0]


@each_framework
def test_pixels_are_scaled_as_the_recipe_scales_them(maker, framework):
    """uint8 and float32 batches of the same images give the same losses; the batch's counts are kept."""
    from harness.workloads.lenet_mnist.recipe import Recipe

    random = np.random.default_rng(0)
    images, labels = random.integers(0, 256, (8, 28, 28, 1), dtype=np.uint8), random.integers(0, 10, 8)
    losses = []
    for given in (images, Recipe().prepare(images)):
        context = maker.context("lenet_mnist", framework, batch_size=8)
        session = maker.session(context)
        batch = session.to_device(Batch(in_framework(context, given, labels), 5, consumed=8))
        assert (batch.samples, batch.consumed) == (5, 8)
        losses.append([session.step(batch).loss for _ in range(2)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


@each_framework
def test_pixels_are_refused_where_samples_must_be_prepared(maker, framework):
    context = maker.context("resnet20_cifar10", framework, batch_size=4)
    session = maker.session(context)
    batch = session.to_device(pixel_feed(context)(0))
    with pytest.raises(UserError, match="takes samples that the pipeline has prepared"):
        session.step(batch)


def test_lenets_are_the_same_model(maker, feed):
    """Keras's weights in the torch model: the losses of several steps agree."""
    import torch

    contexts = [maker.context("lenet_mnist", name, batch_size=16) for name in ("torch", "tensorflow")]
    ours, theirs = (maker.session(context) for context in contexts)
    for (kernel, bias), module in zip(
        [layer.get_weights() for layer in theirs.model.layers if layer.weights],
        [m for m in ours.model.body if isinstance(m, torch.nn.Conv2d | torch.nn.Linear)],
        strict=True,
    ):
        if kernel.shape[0] == 7 * 7 * 64:
            kernel = kernel.reshape(7, 7, 64, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)
        kernel = kernel.transpose(3, 2, 0, 1) if kernel.ndim == 4 else kernel.T
        with torch.no_grad():
            module.weight.copy_(torch.from_numpy(kernel.copy()))
            module.bias.copy_(torch.from_numpy(bias))
    losses = [
        [session.step(session.to_device(batch(i))).loss for i in range(4)]
        for session, batch in zip((ours, theirs), (feed(context) for context in contexts), strict=True)
    ]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3)


@each_framework
def test_optimizer_options(maker, framework):
    """sgd at a learning rate of nothing leaves the parameters where they are; the facts say what was chosen."""
    context = photographs(maker, framework, "resnet34", optimizer="sgd", learning_rate=0.0, momentum=0.5)
    session = maker.session(context)
    details = session.facts().details
    assert (details["optimizer"], details["learning_rate"], details["momentum"]) == ("sgd", 0.0, 0.5)
    assert (details["precision"], details["compiled"]) == ("fp32", False)
    before = session.digest()
    session.step(session.to_device(pixel_feed(context)(0)))
    assert session.digest() == before


@each_framework
def test_bf16_and_layout_are_computed_and_recorded(maker, framework):
    context = maker.context(
        "resnet_imagenet",
        framework,
        model="resnet34",
        batch_size=4,
        precision="bf16",
        channels_last=True,
        options=SMALL,
    )
    session = maker.session(context)
    details = session.facts().details
    assert (details["precision"], details["layout"]) == ("bf16", "channels_last")
    # the weights stay float32, of which the digest is taken
    assert np.isfinite(session.step(session.to_device(pixel_feed(context)(0))).loss)
    if framework == "torch":
        import torch

        assert session.model.conv1.weight.is_contiguous(memory_format=torch.channels_last)


@each_framework
@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("resnet-34", {}, "unknown model 'resnet-34'; did you mean 'resnet34'"),
        ("resnet34", {"optimizer": "sdg"}, "unknown optimizer 'sdg'; did you mean 'sgd'"),
        ("resnet34", {"image_size": 16}, "options.image_size is 16; resnet34 takes 32 pixels or more"),
    ],
)
def test_what_is_refused(maker, framework, model, options, message):
    with pytest.raises(HarnessError, match=message):
        maker.session(photographs(maker, framework, model, **options))
