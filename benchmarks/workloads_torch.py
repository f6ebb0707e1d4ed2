"""Steps of our torch sessions and of plain scripts of the same models; started by ``bench_workloads.py``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from workloads_pairs import (
    Held,
    Readings,
    Side,
    answer,
    context,
    images_and_labels,
    one_by_one,
    session_of,
    timed,
    under_the_step_clock,
)

from harness.workloads.dcgan_mnist.model_torch import BETAS, LATENT, Discriminator, Generator
from harness.workloads.resnet20_cifar10.model_torch import L2, ResNet20

ROUNDS, STEPS = 24, 5

Batches = list[tuple[Any, Any]]
Loop = Callable[[int], None]


def batches_of(workload: str, size: int) -> Batches:
    """Tensors ``(b, c, h, w)`` and labels."""
    images, labels = images_and_labels(workload)
    pictures = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
    return list(zip(pictures.split(size), torch.from_numpy(labels).split(size), strict=True))


def plain_resnet20(batches: Batches, layout: torch.memory_format = torch.contiguous_format, **adam: Any) -> Loop:
    """The loop of the tutorials."""
    model = ResNet20().to(memory_format=layout)
    kernels = [m.weight for m in model.modules() if isinstance(m, nn.Conv2d)]
    rest = [p for p in model.parameters() if all(p is not k for k in kernels)]
    optimizer = torch.optim.Adam([{"params": kernels, "weight_decay": 2 * L2}, {"params": rest}], lr=1e-3, **adam)
    criterion = nn.CrossEntropyLoss()

    def loop(steps: int) -> None:
        running = 0.0
        for step in range(steps):
            images, labels = batches[step % len(batches)]
            optimizer.zero_grad()
            loss = criterion(model(images.to(memory_format=layout)), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()

    return loop


def plain_dcgan(batches: Batches, **adam: Any) -> Loop:
    """The loop of the tutorials, with the workload's three updates."""
    generator, discriminator = Generator(), Discriminator()
    generator_adam, discriminator_adam = (
        torch.optim.Adam(model.parameters(), lr=2e-4, betas=BETAS, **adam) for model in (generator, discriminator)
    )
    criterion = nn.BCEWithLogitsLoss()

    def judge(images: Any, target: Any) -> Any:
        discriminator_adam.zero_grad()
        loss = criterion(discriminator(images), target)
        loss.backward()
        discriminator_adam.step()
        return loss

    def loop(steps: int) -> None:
        running = 0.0
        for step in range(steps):
            images, _ = batches[step % len(batches)]
            ones, zeros = torch.ones(len(images), 1), torch.zeros(len(images), 1)
            noise = torch.randn(len(images), LATENT)
            generator.eval()
            with torch.no_grad():
                fake = generator(noise)
            generator.train()
            real = judge(images, ones)
            running += (real.item() + judge(fake, zeros).item()) / 2
            generator_adam.zero_grad()
            loss = criterion(discriminator(generator(noise)), ones)
            loss.backward()
            generator_adam.step()

    return loop


def compared(
    workload: str,
    plain: Mapping[str, Callable[[Batches], Loop]],
    rounds: int,
    directory: Path,
    **axes: Any,
) -> Readings:
    """Our session and the plain loops, in turn."""
    made = context(workload, "torch", **axes)
    size = made.axes.batch_size
    batches = batches_of(workload, size)

    def ours() -> Side:
        return under_the_step_clock(session_of(made), Held(batches, size), directory)

    def usual(loop: Callable[[Batches], Loop]) -> Side:
        return timed(loop(batches))

    return one_by_one({"ours": ours} | {name: partial(usual, loop) for name, loop in plain.items()}, rounds, STEPS)


def measure(options: argparse.Namespace, directory: Path) -> Iterator[tuple[str, Readings]]:
    rounds = 2 if options.quick else options.rounds or ROUNDS
    usual, fused = "plain torch loop", "plain torch loop, fused Adam"
    plain: dict[str, Callable[[Batches], Loop]] = {usual: plain_resnet20, fused: partial(plain_resnet20, fused=True)}
    yield "ResNet20, torch", compared("resnet20_cifar10", plain, rounds, directory)
    if options.quick:
        return
    plain = {f"{fused}, channels_last": partial(plain_resnet20, layout=torch.channels_last, fused=True)}
    last = compared("resnet20_cifar10", plain, rounds, directory, channels_last=True)
    yield "ResNet20, torch, channels_last", last
    plain = {usual: plain_dcgan, fused: partial(plain_dcgan, fused=True)}
    yield "DCGAN, torch", compared("dcgan_mnist", plain, rounds, directory)


if __name__ == "__main__":
    answer(measure)
