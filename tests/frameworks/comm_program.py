"""Started under mpirun by test_comm_training: trains a small network through a workload's Trainer.

``comm_program.py FRAMEWORK COMM BATCH_SIZE DIRECTORY [compile] [abort]`` leaves ``rank<r>.npz``. The samples are the
same whatever the number of ranks: rank r takes the r-th part of each global batch. Plain gradient descent, so that
parameters follow the gradients in proportion: Adam would blow up what rounding does to the smallest of them. With
abort, rank 1 gives up while rank 0 goes on to an exchange.
"""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from frameworks_support import Maker

from harness import catalog
from harness.runtime.ranks import detect

STEPS = 5
LEARNING_RATE = 0.1
IMAGES, CLASSES = (8, 8, 3), 4


def samples(rank: int, world: int, batch_size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """This rank's part of each global batch; ``batch_size`` is a rank's."""
    random = np.random.default_rng(3)
    parts = []
    for _ in range(STEPS):
        images = random.normal(size=(batch_size * world, *IMAGES)).astype(np.float32)
        labels = random.integers(0, CLASSES, batch_size * world)
        own = slice(rank * batch_size, (rank + 1) * batch_size)
        parts.append((images[own], labels[own]))
    return parts


def train_torch(context: Any, batches: list[tuple[np.ndarray, np.ndarray]]) -> tuple[list[np.ndarray], list[float]]:
    import torch
    from torch import nn

    from harness.workloads.training_torch import Trainer

    trainer = Trainer(context)
    body = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 36, CLASSES))
    model = trainer.place(body)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    for images, labels in batches:
        logits = model(trainer.images(torch.from_numpy(images).permute(0, 3, 1, 2)))
        trainer.update(nn.functional.cross_entropy(logits, torch.from_numpy(labels)), optimizer)
    return [p.detach().numpy() for p in model.parameters()], [trainer.exchange_s]


def train_tensorflow(context: Any, batches: list[Any]) -> tuple[list[np.ndarray], list[float]]:
    import keras
    import tensorflow as tf

    from harness.workloads.training_tf import Trainer

    trainer = Trainer(context)
    flow = [keras.layers.Conv2D(6, 3, activation="relu"), keras.layers.Flatten(), keras.layers.Dense(CLASSES)]
    model = keras.Sequential([keras.Input(IMAGES), *flow])
    trainer.start_equal([model])

    def loss(images: Any, labels: Any) -> Any:
        logits = model(images, training=True)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    update = trainer.update(loss, model.trainable_variables, keras.optimizers.SGD(LEARNING_RATE))
    step = trainer.step_function(update)
    for batch in batches:
        step(*trainer.tensors(batch))
    return [v.numpy() for v in model.trainable_variables], [trainer.exchange_s]


def main(framework: str, comm: str, batch_size: str, directory: str, *flags: str) -> None:
    ranks = detect(os.environ, socket.gethostname())
    axes = {"comm": comm, "compile": "compile" in flags, "ranks_per_node": ranks.world}
    place = {"rank": ranks.rank, "world": ranks.world}
    # the engine comes first, as in a run: it sets pools and devices before the exchange loads its libraries
    context = Maker().context("resnet20_cifar10", framework, **place, **axes)
    exchange = catalog.load(catalog.COMMS[comm])(context.spec, ranks, context.device)
    context = replace(context, exchange=exchange)
    if "abort" in flags and ranks.rank == 1:
        exchange.abort(7)
    train = {"torch": train_torch, "tensorflow": train_tensorflow}[framework]
    parameters, exchange_s = train(context, samples(ranks.rank, ranks.world, int(batch_size)))
    arrays = {f"p{number}": parameter for number, parameter in enumerate(parameters)}
    texts = exchange.gather_text(f"rank {ranks.rank} says ü")
    given = [
        np.arange(3, dtype=np.int64) + ranks.rank,
        np.full((2, 2), ranks.rank, np.float32),
        np.zeros(0, np.float32),
    ]
    received = exchange.broadcast(given)
    mean = exchange.average([np.full((2, 3), ranks.rank, np.float32), np.zeros((0, 4), np.float32)])
    exchange.barrier()
    np.savez(
        Path(directory) / f"rank{ranks.rank}.npz",
        exchange_s=exchange_s,
        texts=texts,
        versions=[f"{k}={v}" for k, v in exchange.versions().items()],
        **arrays,
        **{f"b{number}": array for number, array in enumerate(received)},
        **{f"m{number}": array for number, array in enumerate(mean)},
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
