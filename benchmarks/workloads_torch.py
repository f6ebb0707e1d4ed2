"""Steps of our torch sessions and of plain scripts of the same models; started by ``bench_workloads.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from workloads_pairs import (
    Held,
    answer,
    by_the_clock,
    context,
    images_and_labels,
    in_turn,
    session_of,
    under_the_step_clock,
)

from harness.workloads.dcgan_mnist.model_torch import BETAS, LATENT, Discriminator, Generator
from harness.workloads.resnet20_cifar10.model_torch import L2, ResNet20


def batches_of(workload: str, size: int) -> list[tuple[Any, Any]]:
    """Tensors ``(b, c, h, w)`` and labels."""
    images, labels = images_and_labels(workload)
    pictures = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
    return list(zip(pictures.split(size), torch.from_numpy(labels).split(size), strict=True))


def plain_resnet20(batches: list[tuple[Any, Any]]) -> Callable[[int], float]:
    """The loop of the tutorials."""
    model = ResNet20()
    kernels = [m.weight for m in model.modules() if isinstance(m, nn.Conv2d)]
    rest = [p for p in model.parameters() if all(p is not k for k in kernels)]
    optimizer = torch.optim.Adam([{"params": kernels, "weight_decay": 2 * L2}, {"params": rest}], lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    def loop(steps: int) -> float:
        running = 0.0
        for step in range(steps):
            images, labels = batches[step % len(batches)]
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
        return running / steps

    return loop


def plain_dcgan(batches: list[tuple[Any, Any]]) -> Callable[[int], float]:
    """The loop of the tutorials, with the workload's three updates."""
    generator, discriminator = Generator(), Discriminator()
    generator_adam = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=BETAS)
    discriminator_adam = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=BETAS)
    criterion = nn.BCEWithLogitsLoss()

    def judge(images: Any, target: Any) -> Any:
        discriminator_adam.zero_grad()
        loss = criterion(discriminator(images), target)
        loss.backward()
        discriminator_adam.step()
        return loss

    def loop(steps: int) -> float:
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
        return running / steps

    return loop


def measure(quick: bool, directory: Path) -> Iterator[tuple[str, dict[str, list[float]]]]:
    blocks, steps = (2, 3) if quick else (8, 15)
    known = {"ResNet20": ("resnet20_cifar10", plain_resnet20), "DCGAN": ("dcgan_mnist", plain_dcgan)}
    for model in list(known)[: 1 if quick else None]:
        workload, plain = known[model]
        made = context(workload, "torch")
        size = made.axes.batch_size
        batches = batches_of(made.axes.workload, size)
        ours = under_the_step_clock(session_of(made), Held(batches, size), directory)
        yield (
            f"{model}, torch",
            in_turn({"ours": ours, "plain torch loop": by_the_clock(plain(batches))}, blocks, steps),
        )


if __name__ == "__main__":
    answer(measure)
