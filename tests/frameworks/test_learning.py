"""Parameter counts, falling losses, determinism, precision, in both frameworks."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from harness.errors import UserError

pytest.importorskip("tensorflow")
pytest.importorskip("torch")

pytestmark = pytest.mark.framework
FRAMEWORKS = ("tensorflow", "torch")
each_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


def train(session, batch, steps):
    return [session.step(session.to_device(batch(i))).loss for i in range(steps)]


@each_framework
def test_resnet20_parameters(maker, framework):
    facts = maker.session(maker.context("resnet20_cifar10", framework)).facts()
    assert (facts.name, facts.parameters, facts.trainable) == ("resnet20_v1", 274_442, 273_066)


@each_framework
def test_dcgan_parameters(maker, framework):
    facts = maker.session(maker.context("dcgan_mnist", framework)).facts()
    assert facts.details == {"generator": 856_193, "discriminator": 393_729}
    assert facts.parameters == 856_193 + 393_729
    # running means and variances are not trained: generator 128 + 64 channels, discriminator 64 + 128 + 256
    assert facts.trainable == facts.parameters - 2 * (128 + 64) - 2 * (64 + 128 + 256)


@each_framework
def test_resnet20_learns(maker, feed, framework):
    context = maker.context("resnet20_cifar10", framework, batch_size=16)
    losses = train(maker.session(context), feed(context), 30)
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])


@each_framework
def test_discriminator_learns(maker, feed, framework):
    context = maker.context("dcgan_mnist", framework, batch_size=16)
    losses = train(maker.session(context), feed(context), 25)
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:3])


@each_framework
def test_what_a_batch_counts_is_kept_on_its_way_to_the_device(maker, feed, framework):
    """Echoed images enter a step, though they are not fresh."""
    context = maker.context("dcgan_mnist", framework, batch_size=4)
    batch = maker.session(context).to_device(replace(feed(context)(0), samples=2, consumed=4))
    assert (batch.samples, batch.consumed) == (2, 4)


@each_framework
@pytest.mark.parametrize("workload", ["dcgan_mnist", "resnet20_cifar10"])
def test_seeds(maker, feed, framework, workload):
    """The same seed gives the same first losses and the same parameters to a digit, another repeat gives others."""

    def first_losses(repeat):
        context = maker.context(workload, framework, batch_size=8, repeat=repeat)
        return train(maker.session(context), feed(context), 3)

    one, same, other = first_losses(0), first_losses(0), first_losses(1)
    np.testing.assert_allclose(one, same, rtol=1e-4)
    assert np.abs(np.subtract(one, other)).max() > 1e-2


@each_framework
def test_digest_is_of_the_trainable_parameters(maker, feed, framework):
    context = maker.context("resnet20_cifar10", framework, batch_size=8)
    session = maker.session(context)
    model = session.model
    arrays = (
        [v.numpy() for v in model.trainable_variables]
        if framework == "tensorflow"
        else [p.detach().numpy() for p in model.parameters()]
    )
    assert session.digest() == hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()
    before = session.digest()
    session.step(session.to_device(feed(context)(0)))
    assert session.digest() != before


@each_framework
@pytest.mark.parametrize("workload", ["dcgan_mnist", "resnet20_cifar10"])
def test_bf16_is_close_to_fp32_and_not_the_same(maker, feed, framework, workload):
    losses = {}
    for precision in ("fp32", "bf16"):
        context = maker.context(workload, framework, batch_size=8, precision=precision)
        losses[precision] = train(maker.session(context), feed(context), 1)[0]
    assert losses["bf16"] != losses["fp32"]
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.1)


@each_framework
@pytest.mark.parametrize("precision", ["fp16", "tf32"])
def test_precisions_refused_on_a_cpu(maker, framework, precision):
    with pytest.raises(UserError, match="needs a GPU"):
        maker.context("dcgan_mnist", framework, precision=precision)


@each_framework
def test_a_missing_gpu_is_refused(maker, framework):
    with pytest.raises(UserError, match="needs a GPU, but"):
        maker.context("dcgan_mnist", framework, gpus_per_rank=1)


def test_channels_last_computes_the_same(maker, feed):
    losses = []
    for channels_last in (False, True):
        context = maker.context("resnet20_cifar10", "torch", batch_size=8, channels_last=channels_last)
        session = maker.session(context)
        losses.append(train(session, feed(context), 3))
        weight = session.model.stem[0].weight
        assert weight.is_contiguous() is not channels_last
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-2)


@pytest.mark.parametrize(("framework", "modules"), [("torch", {"torch"}), ("tensorflow", {"tensorflow", "keras"})])
def test_engine_reports(maker, framework, modules):
    from harness import catalog

    context = maker.context("dcgan_mnist", framework)
    engine = catalog.load(catalog.ENGINES[framework])()
    pools = engine.thread_pools()
    assert (pools["intra_op"], pools["inter_op"]) == (context.threads, context.threads)
    versions = engine.versions()
    assert modules <= set(versions)
    assert all(versions.values())


def test_the_last_steps_gradients_are_gone_when_the_new_ones_are_computed(maker, feed):
    """Else twice the memory is held, and the new ones find none in the caches."""
    context = maker.context("resnet20_cifar10", "torch", batch_size=4)
    session, batch = maker.session(context), feed(context)
    train(session, batch, 1)
    parameters, held = list(session.model.parameters()), []
    assert all(parameter.grad is not None for parameter in parameters)
    parameters[-1].register_hook(lambda gradient: held.append(sum(p.grad is not None for p in parameters)))
    train(session, batch, 1)
    assert held == [0]
