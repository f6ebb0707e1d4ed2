"""Names → where their code lives, and framework-free facts about them.

Nothing here imports a framework: the login side plans from these facts, the compute side loads ``module:attr``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from harness.catalog_pipelines import FRAMEWORKS as FRAMEWORKS
from harness.catalog_pipelines import NO_FRAMEWORK as NO_FRAMEWORK
from harness.catalog_pipelines import NO_OPTIONS
from harness.catalog_pipelines import PIPELINES as PIPELINES
from harness.catalog_pipelines import Option as Option
from harness.catalog_pipelines import PipelineSpec as PipelineSpec
from harness.errors import CatalogError, nearest


class DatasetSpec(NamedTuple):
    """A data set's form. ``origins`` are the ways to have it: the real one, or generated sets in the same format.

    ``sample_shape`` is (height, width, channels) as pipelines deliver it: images of various sizes are resized.
    ``multi_label``: an image has any number of the classes, not exactly one.
    """

    name: str
    description: str
    sample_shape: tuple[int, int, int]
    classes: int
    reader: str
    origins: tuple[str, ...]
    in_memory: bool = False
    multi_label: bool = False


class WorkloadSpec(NamedTuple):
    """A training task. ``frameworks`` maps a framework to the ``module:attr`` that builds its session.

    ``recipe`` names the framework-free preparation and augmentation of its samples. ``models`` are the variants it
    has, ``model`` being the one meant where none is named. ``datasets`` are all data sets it trains on; empty: those
    whose samples have the shape of ``dataset``'s.
    """

    name: str
    description: str
    frameworks: Mapping[str, str]
    dataset: str | None
    batch_size: int
    pipelines: Mapping[str, str]
    model: str | None = None
    models: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    recipe: str | None = None
    options: Mapping[str, Option] = NO_OPTIONS
    source: str = ""


DATASETS = {
    spec.name: spec
    for spec in (
        DatasetSpec(
            name="mnist",
            description="MNIST, 28×28 greyscale digits, gzip IDX files",
            sample_shape=(28, 28, 1),
            classes=10,
            reader="harness.datasets.mnist:read",
            origins=("real", "digits", "synthetic"),
            in_memory=True,
        ),
        DatasetSpec(
            name="cifar10",
            description="CIFAR-10, 32×32 colour images, python or binary batches",
            sample_shape=(32, 32, 3),
            classes=10,
            reader="harness.datasets.cifar10:read",
            origins=("real", "photos", "synthetic"),
            in_memory=True,
        ),
        DatasetSpec(
            name="imagenet",
            description="ImageNet ILSVRC2012 CLS-LOC, a tree of JPEGs with bounding boxes in XML",
            sample_shape=(256, 256, 3),
            classes=1000,
            reader="harness.datasets.imagenet:read",
            origins=("real", "synthetic"),
        ),
        DatasetSpec(
            name="caltech256",
            description="Caltech-256, a tree of small JPEGs",
            sample_shape=(256, 256, 3),
            classes=257,
            reader="harness.datasets.caltech256:read",
            origins=("real", "synthetic"),
        ),
        DatasetSpec(
            name="chestxray14",
            description="ChestX-ray14, grey 1024×1024 PNGs with up to 14 findings each",
            sample_shape=(256, 256, 3),
            classes=14,
            reader="harness.datasets.chestxray14:read",
            origins=("real", "synthetic"),
            multi_label=True,
        ),
    )
}

#: encoding → what the stored samples are; ``native`` is the data set as published
ENCODINGS = {
    "native": "as the data set is published",
    "tfrecord": "TFRecord shards of the encoded images",
    "tfrecord_decoded": "TFRecord shards of pixels",
    "lmdb": "LMDB shards of the encoded images",
    "npy": "numpy arrays of pixels, to be memory-mapped",
    "webdataset": "tar shards of the encoded images",
    "jpeg": "a tree of resized JPEGs",
}

_VALIDATION = Option(
    int, 0, "steps after which the loss over the test samples is told, each time; computed after all steps. 0: never"
)

WORKLOADS = {
    spec.name: spec
    for spec in (
        WorkloadSpec(
            name="dcgan_mnist",
            description="DCGAN on MNIST: discriminator on real, discriminator on generated, generator; one update each",
            frameworks={
                "tensorflow": "harness.workloads.dcgan_mnist.model_tf:build",
                "torch": "harness.workloads.dcgan_mnist.model_torch:build",
            },
            recipe="harness.workloads.dcgan_mnist.recipe:Recipe",
            dataset="mnist",
            batch_size=32,
            pipelines={"tensorflow": "memory", "torch": "memory"},
            source="NUS HPC, experiment A",
        ),
        WorkloadSpec(
            name="resnet20_cifar10",
            description="ResNet20 v1 on CIFAR-10 with shift and flip augmentation",
            frameworks={
                "tensorflow": "harness.workloads.resnet20_cifar10.model_tf:build",
                "torch": "harness.workloads.resnet20_cifar10.model_torch:build",
            },
            recipe="harness.workloads.resnet20_cifar10.recipe:Recipe",
            dataset="cifar10",
            batch_size=64,
            pipelines={"tensorflow": "memory", "torch": "memory"},
            options={"validation_window": _VALIDATION},
            source="NUS HPC, experiment B",
        ),
        WorkloadSpec(
            name="resnet_imagenet",
            description="ResNet34, ResNet50 or DenseNet121 on photographs or chest X-rays, untrained",
            frameworks={
                "tensorflow": "harness.workloads.resnet_imagenet.model_tf:build",
                "torch": "harness.workloads.resnet_imagenet.model_torch:build",
            },
            model="resnet50",
            models=("resnet34", "resnet50", "densenet121"),
            dataset="imagenet",
            datasets=("imagenet", "caltech256", "chestxray14"),
            batch_size=32,
            pipelines={"tensorflow": "tf_files", "torch": "torch_files"},
            options={
                "image_size": Option(int, 256, "height and width of the images fed to the model, pixels; 32 or more"),
                "optimizer": Option(str, "adam", "adam, or sgd with momentum", ("adam", "sgd")),
                "learning_rate": Option(float, 1e-4, "learning rate, constant"),
                "momentum": Option(float, 0.9, "momentum of sgd"),
            },
            source="ALCF (resnet34), AWS (resnet50), Dell (resnet50, densenet121)",
        ),
        WorkloadSpec(
            name="lenet_mnist",
            description="LeNet-style network on MNIST: two 5×5 convolutions, a hidden layer of 1024",
            frameworks={
                "tensorflow": "harness.workloads.lenet_mnist.model_tf:build",
                "torch": "harness.workloads.lenet_mnist.model_torch:build",
            },
            recipe="harness.workloads.lenet_mnist.recipe:Recipe",
            dataset="mnist",
            batch_size=256,
            pipelines={"tensorflow": "memory", "torch": "memory"},
            options={"validation_window": _VALIDATION},
            source="AFRL",
        ),
        WorkloadSpec(
            name="replay",
            description="framework-free scripted producer, buffer and consumer with exactly known results",
            frameworks={NO_FRAMEWORK: "harness.workloads.replay:build"},
            dataset=None,
            batch_size=32,
            pipelines={NO_FRAMEWORK: "scripted"},
            options={
                "produce_s": Option(float, 0.01, "seconds one producer needs for a batch"),
                "consume_s": Option(float, 0.01, "seconds the consumer needs for a batch"),
                "first_step_s": Option(float, 0.0, "further seconds of the first step, as compilation takes"),
                "clock": Option(str, "virtual", "virtual: exact and instantaneous; real: sleeps"),
                "produce_script": Option(list, [], "seconds of the batches in turn, repeated; instead of produce_s"),
                "consume_script": Option(list, [], "seconds of the steps in turn, repeated; instead of consume_s"),
                "straggler_every": Option(int, 0, "every so many batches one takes straggler_s longer; 0: none"),
                "straggler_s": Option(float, 0.0, "further seconds of a straggling batch"),
                "lag_s": Option(float, 0.0, "further seconds of each step of the last rank"),
                "fail_at_step": Option(int, -1, "step that fails, on the last rank, to rehearse a failure; -1: none"),
            },
        ),
    )
}

ENGINES = {
    "tensorflow": "harness.runtime.engine_tf:Engine",
    "torch": "harness.runtime.engine_torch:Engine",
    NO_FRAMEWORK: "harness.runtime.engine_none:Engine",
}

COMMS = {
    "none": "harness.comm.none:build",
    "mpi4py": "harness.comm.mpi4py_exchange:build",
    "horovod": "harness.comm.horovod_exchange:build",
    "torch_ddp": "harness.comm.torch_ddp:build",
}

#: gradient exchange → the frameworks whose models it can train; one not named here serves all
COMM_FRAMEWORKS = {"horovod": FRAMEWORKS, "torch_ddp": ("torch",)}

#: precisions that no framework here computes in on a CPU
GPU_PRECISIONS = ("tf32", "fp16")

SCHEDULERS = {
    "local": "harness.jobs.schedulers.local",
    "pbs": "harness.jobs.schedulers.pbs",
    "torque": "harness.jobs.schedulers.torque",
    "slurm": "harness.jobs.schedulers.slurm",
}

Spec = TypeVar("Spec")


def lookup(table: Mapping[str, Spec], name: str, kind: str) -> Spec:
    """The entry ``name``, or a message with every valid name, the nearest first."""
    try:
        return table[name]
    except KeyError:
        raise CatalogError(f"unknown {kind} {name!r}; {nearest(name, list(table))}") from None


def load(reference: str) -> Any:
    """The object that ``module:attr`` (or ``module``) names."""
    module, _, attribute = reference.partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def split_dataset(name: str) -> tuple[str, str]:
    """``(origin, format)`` of a data set's name: ``mnist`` is (real, mnist), ``synthetic:mnist`` (synthetic, mnist)."""
    origin, colon, form = name.partition(":")
    return (origin, form) if colon else ("real", name)


def reads_data(dataset: str | None, pipeline: str | None) -> bool:
    """Whether a point with that data set and pipeline needs the data to be there."""
    return dataset is not None and (pipeline not in PIPELINES or PIPELINES[pipeline].reads_data)


def dataset_directory(name: str, encoding: str = "native") -> str:
    """Directory of a data set inside a storage: ``mnist``, ``digits-mnist``, ``synthetic-imagenet.tfrecord``."""
    origin, form = split_dataset(name)
    directory = form if origin == "real" else f"{origin}-{form}"
    return directory if encoding == "native" else f"{directory}.{encoding}"
