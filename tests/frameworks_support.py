"""What a run builds, built by hand: contexts, sessions and batches of small generated data, for the framework tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from harness import catalog
from harness.model.axes import Axes
from harness.model.job import Placement, RunSpec
from harness.pipelines.interface import batch_form
from harness.pipelines.stream import BatchStream
from harness.runtime.interfaces import Batch, Ranks, RunContext

# one: OpenMP threads that share a core with another test wait for each other by spinning
THREADS = 1
PLACEMENT = Placement(cluster="test", nodes=1, ranks_per_node=1, cores_per_node=2, walltime_s=60, data_path="/nowhere")


class Solo:
    """The exchange of a rank that exchanges nothing."""

    name = "none"

    def average(self, arrays: Sequence[Any]) -> list[Any]:
        return list(arrays)

    def broadcast(self, arrays: Sequence[Any]) -> list[Any]:
        return list(arrays)

    def gather_text(self, text: str) -> list[str]:
        return [text]

    def barrier(self) -> None:
        return


@dataclass
class Maker:
    """Builds what a run builds: engine, context, session, batches."""

    notes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def context(
        self,
        workload: str,
        framework: str,
        *,
        exchange: Any = None,
        rank: int = 0,
        world: int = 1,
        repeat: int = 0,
        data_path: Path | None = None,
        **axes: Any,
    ) -> RunContext:
        spec = catalog.WORKLOADS[workload]
        axes = {"dataset": f"synthetic:{spec.dataset}", "batch_size": spec.batch_size} | axes
        run = RunSpec(
            campaign="tests",
            point_id="0" * 16,
            repeat=repeat,
            attempt=1,
            axes=Axes(workload=workload, framework=framework, **axes),
            placement=PLACEMENT,
            harness_version="0",
        )
        ranks = Ranks(rank, world, rank, world, "here")
        device = catalog.load(catalog.ENGINES[framework])().prepare(run, ranks, THREADS)
        clock = SimpleNamespace(now=time.monotonic, sleep=time.sleep)
        return RunContext(run, ranks, (0, 1), THREADS, exchange or Solo(), clock, device, data_path, self._note)

    def session(self, context: RunContext) -> Any:
        return catalog.load(catalog.WORKLOADS[context.axes.workload].frameworks[context.axes.framework])(context)

    def _note(self, kind: str, **fields: Any) -> None:
        self.notes.append((kind, fields))


def patterns(shape: tuple[int, ...], count: int = 512) -> tuple[np.ndarray, np.ndarray]:
    """Images a model can learn: each class a fixed random pattern, under noise."""
    random = np.random.default_rng(7)
    labels = random.integers(0, 10, count)
    classes = random.integers(0, 256, (10, *shape))
    noise = random.integers(-40, 41, (count, *shape))
    return np.clip(classes[labels] + noise, 0, 255).astype(np.uint8), labels.astype(np.uint8)


def pixel_feed(context: RunContext) -> Callable[[int], Batch]:
    """From a batch's number to a batch of random pixels and labels, as a pipeline that decodes images makes it."""
    form, size = batch_form(context.axes), context.axes.batch_size

    def batch(index: int) -> Batch:
        random = np.random.default_rng((index, context.ranks.rank))
        images = random.integers(0, 256, (size, form.height, form.width, form.channels), dtype=np.uint8)
        labels = random.integers(0, form.classes, size)
        if form.multi_label:
            labels = random.integers(0, 2, (size, form.classes)).astype(np.float32)
        return Batch(in_framework(context, images, labels), size)

    return batch


def in_framework(context: RunContext, images: np.ndarray, labels: np.ndarray) -> Any:
    """``(b, h, w, c)`` arrays as the framework's pipelines hand them over."""
    if context.axes.framework != "torch":
        return images, labels
    import torch

    return torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(labels)


def prepare_feed(context: RunContext, augment: bool = True) -> Callable[[int], Batch]:
    """From a batch's number to this rank's batch, as the pipelines make it."""
    workload = catalog.WORKLOADS[context.axes.workload]
    if workload.recipe is None:
        return pixel_feed(context)
    images, labels = patterns(catalog.DATASETS[workload.dataset].sample_shape)
    recipe = catalog.load(workload.recipe)()
    scaled = recipe.prepare(images)
    if not augment:
        recipe.augment = lambda images, random: images
    ranks = context.ranks
    stream = BatchStream(
        scaled,
        labels.astype(np.int64),
        recipe,
        context.axes.batch_size,
        rank=ranks.rank,
        world=ranks.world,
        seed=context.spec.seed,
    )

    def batch(index: int) -> Batch:
        return Batch(in_framework(context, *stream[index]), context.axes.batch_size)

    return batch
