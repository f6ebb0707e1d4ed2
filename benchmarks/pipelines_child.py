"""A process that measures one input pipeline block by block, on the cores that it is confined to.

    python benchmarks/pipelines_child.py NAME FRAMEWORK DATA

Having warmed up it answers with a line; to each line that it reads it answers with what a block brought: images, the
seconds by the clock, and the CPU seconds of all its threads and processes. ``bench_pipelines.py`` stops the whole
process group between its turns, so buffers keep their content and nothing is made out of turn.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil

from harness import catalog
from harness.model.axes import Axes
from harness.model.job import Placement, RunSpec
from harness.runtime.interfaces import Ranks, RunContext

IMAGES = 512
BATCH = 32
SIDE = 224
SEED = 1

#: takes one block and returns its images
Block = Callable[[], int]


@dataclass(frozen=True)
class Contender:
    """One pipeline as a sweep would name it; ``batches`` of ``batch_size`` make a block."""

    framework: str
    pipeline: str
    directory: str = "imagenet"
    encoding: str = "native"
    workload: str = "resnet_imagenet"
    batch_size: int = BATCH
    batches: int = IMAGES // BATCH
    options: dict[str, Any] = field(default_factory=lambda: {"image_size": SIDE})
    prefetch: int | None = 2


def _small(framework: str, pipeline: str, form: str, workload: str, **more: Any) -> Contender:
    return Contender(framework, pipeline, form, "native", workload, 64, 100, **({"options": {}} | more))


#: what they are held against besides the limit, and the process it lives in
USUAL = {"usual torch": "torch", "usual tf.data": "tensorflow"}
#: name in the tables → what it is
OURS = {
    "torch_fast": Contender("torch", "torch_fast"),
    "torch_fast (LMDB)": Contender("torch", "torch_fast", "imagenet.lmdb", "lmdb"),
    "torch_files": Contender("torch", "torch_files"),
    "torch_lmdb": Contender("torch", "torch_lmdb", "imagenet.lmdb", "lmdb"),
    "torch_webdataset": Contender("torch", "torch_webdataset", "imagenet.webdataset", "webdataset"),
    "torch_memory": Contender("torch", "torch_memory", "imagenet.npy", "npy", batches=4 * IMAGES // BATCH),
    "tf_files": Contender("tensorflow", "tf_files", options={"image_size": SIDE, "boxes": "ignore"}),
    "tf_records_old": Contender("tensorflow", "tf_records_old", "imagenet.tfrecord", "tfrecord"),
    "tf_records_new": Contender("tensorflow", "tf_records_new", "imagenet.tfrecord", "tfrecord"),
    "tf_memory": Contender("tensorflow", "tf_memory", "imagenet.npy", "npy", batches=4 * IMAGES // BATCH),
    "memory, Keras, CIFAR-10": _small("tensorflow", "memory", "cifar10", "resnet20_cifar10"),
    "tf_memory, CIFAR-10": _small("tensorflow", "tf_memory", "cifar10", "resnet20_cifar10"),
    "memory, torch, CIFAR-10": _small("torch", "memory", "cifar10", "resnet20_cifar10"),
    "tf_queue, MNIST": _small("tensorflow", "tf_queue", "mnist", "lenet_mnist", options={"queue_capacity": 1024}),
}

#: what those of small images in memory are held against
RECIPES = {
    f"recipe, {form}": OURS[name]
    for form, name in (("CIFAR-10", "memory, torch, CIFAR-10"), ("MNIST", "tf_queue, MNIST"))
}


def context(contender: Contender, data: Path, cpus: tuple[int, ...]) -> RunContext:
    """What a run on ``cpus`` would hand to the pipeline's builder; a worker for each core."""
    form, cores = contender.directory.split(".")[0], len(cpus)
    axes = Axes(
        workload=contender.workload,
        framework=contender.framework,
        dataset=f"synthetic:{form}",
        pipeline=contender.pipeline,
        encoding=contender.encoding,
        batch_size=contender.batch_size,
        cpu_cores=cores,
        workers=cores,
        prefetch=contender.prefetch,
        seed=SEED,
        options=contender.options,
    )
    path = data / contender.directory
    place = Placement(
        cluster="here", nodes=1, ranks_per_node=1, cores_per_node=cores, walltime_s=60, data_path=str(path)
    )
    spec = RunSpec(
        campaign="bench", point_id="0" * 16, repeat=0, attempt=1, axes=axes, placement=place, harness_version="0"
    )
    clock = SimpleNamespace(now=time.monotonic, sleep=time.sleep)
    exchange: Any = None
    return RunContext(spec, Ranks(0, 1, 0, 1, "here"), cpus, cores, exchange, clock, "cpu", path, lambda *_, **__: None)


def recipe_alone(contender: Contender, data: Path, cpus: tuple[int, ...]) -> Block:
    """Batches made one after the other by the workload's recipe, in one thread and no pipeline."""
    from harness.pipelines.stream import load_stream

    stream = load_stream(context(contender, data, cpus))

    def once() -> int:
        for index in range(contender.batches):
            stream[index]
        return contender.batches * contender.batch_size

    return once


def our_blocks(contender: Contender, data: Path, cpus: tuple[int, ...]) -> Block:
    """Some batches of one of our pipelines."""
    build = catalog.load(catalog.PIPELINES[contender.pipeline].frameworks[contender.framework])
    batches = build(context(contender, data, cpus)).batches()
    return lambda: sum(next(batches).samples for _ in range(contender.batches))


def usual_blocks(batches: Iterator[Any]) -> Block:
    """Batches of a loader as tutorials write it."""

    def block() -> int:
        for _ in range(IMAGES // BATCH):
            next(batches)
        return IMAGES

    return block


def block_of(name: str, data: Path, cpus: tuple[int, ...]) -> Block:
    """What ``name`` stands for: one of :data:`OURS`, or what these are held against."""
    import pipelines_usual as usual

    tree, cores = data / "imagenet", len(cpus)
    if name.startswith("limit"):
        _, part, parts, threads = name.split(":")
        return usual.limit(tree, int(part), int(parts), int(threads))
    if name == "usual torch":
        return usual_blocks(usual.usual_torch(tree, cores))
    if name == "usual tf.data":
        return usual_blocks(usual.usual_tensorflow(tree, cores))
    if name in RECIPES:
        return recipe_alone(RECIPES[name], data, cpus)
    return our_blocks(OURS[name], data, cpus)


def cpu_seconds() -> float:
    """Of this process and its workers."""
    workers = psutil.Process().children(recursive=True)
    return time.process_time() + sum(used.user + used.system for used in (w.cpu_times() for w in workers))


def measured(block: Block) -> dict[str, float]:
    """One block."""
    cpu_s, begin_s = cpu_seconds(), time.perf_counter()
    images = block()
    elapsed_s = time.perf_counter() - begin_s
    return {"images": images, "elapsed_s": elapsed_s, "cpu_s": cpu_seconds() - cpu_s}


def prepare(framework: str) -> tuple[int, ...]:
    """Make the framework ready as a run does; returns the process's cores."""
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    spec = context(Contender(framework, "synthetic"), Path(), cpus).spec
    catalog.load(catalog.ENGINES[framework])().prepare(spec, Ranks(0, 1, 0, 1, "here"), len(cpus))
    return cpus


def main() -> None:
    name, framework, directory = sys.argv[1:]
    # frameworks may print; answers keep a channel of their own
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    block = block_of(name, Path(directory), prepare(framework))
    block()
    print("{}", file=answers, flush=True)
    for _ in sys.stdin:
        print(json.dumps(measured(block)), file=answers, flush=True)


if __name__ == "__main__":
    main()
