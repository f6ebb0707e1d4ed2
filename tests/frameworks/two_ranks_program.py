"""Started under mpirun by test_two_ranks: each rank trains some steps of the cases named and leaves ``rank<r>.npz``."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
from frameworks_support import Maker, prepare_feed

from harness import catalog
from harness.runtime.ranks import detect

STEPS = 3
CASES: dict[str, dict[str, Any]] = {
    "plain": {"workload": "resnet20_cifar10"},
    "dcgan_mnist": {"workload": "dcgan_mnist"},
    "resnet20_cifar10": {"workload": "resnet20_cifar10"},
    "lenet_mnist": {"workload": "lenet_mnist"},
    "resnet34": {"workload": "resnet_imagenet", "model": "resnet34", "options": {"image_size": 32}},
}
#: the deep networks, whose graphs take long to trace: one step is enough for ranks that exchange nothing to differ
DEEP: dict[str, dict[str, Any]] = {
    "resnet50": {"workload": "resnet_imagenet", "model": "resnet50", "options": {"image_size": 32}},
    "densenet121": {
        "workload": "resnet_imagenet",
        "model": "densenet121",
        "dataset": "synthetic:chestxray14",
        "options": {"image_size": 32},
    },
}


def train(framework: str, case: str, batch_size: int, **place: Any) -> dict[str, Any]:
    """Digest, losses and exchange times of a few steps, and of ``plain`` the parameters.

    plain: no augmentation, and batch normalisation in inference mode, so that samples do not influence one another.
    """
    maker, plain = Maker(), case == "plain"
    context = maker.context(framework=framework, batch_size=batch_size, **(CASES | DEEP)[case], **place)
    session = maker.session(context)
    if plain:
        freeze_normalisation(session.model)
    batch = prepare_feed(context, augment=not plain)
    outcomes = [session.step(session.to_device(batch(i))) for i in range(1 if case in DEEP else STEPS)]
    arrays = {f"p{i}": p for i, p in enumerate(parameters(session.model))} if plain else {}
    losses, exchange_s = [o.loss for o in outcomes], [o.exchange_s for o in outcomes]
    return {"digest": session.digest(), "losses": losses, "exchange_s": exchange_s, **arrays}


def freeze_normalisation(model: Any) -> None:
    if hasattr(model, "eval"):
        model.eval()
    for layer in getattr(model, "layers", []):
        if layer.__class__.__name__ == "BatchNormalization":
            layer.trainable = False  # Keras then normalises by the running averages, also in training


def parameters(model: Any) -> list[np.ndarray]:
    if hasattr(model, "parameters"):
        return [p.detach().numpy() for p in model.parameters()]
    return [v.numpy() for v in model.variables if v.dtype == "float32"]


def main(framework: str, comm: str, directory: str, *cases: str) -> None:
    ranks = detect(os.environ, socket.gethostname())
    place = {"rank": ranks.rank, "world": ranks.world}
    # the engine comes first, as in a run: it sets thread pools before the exchange loads the framework
    spec = Maker().context("resnet20_cifar10", framework, comm=comm, **place).spec
    exchange = catalog.load(catalog.COMMS[comm])(spec, ranks, "cpu")
    results = {case: train(framework, case, 2 if case in DEEP else 8, exchange=exchange, **place) for case in cases}
    flat = {f"{case}/{name}": value for case, found in results.items() for name, value in found.items()}
    np.savez(Path(directory) / f"rank{ranks.rank}.npz", **flat)


if __name__ == "__main__":
    main(*sys.argv[1:])
