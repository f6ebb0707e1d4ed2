"""The input pipelines: names → where their code lives, what they read, which axes and options they have.

Read through :mod:`harness.catalog`, whose other tables they belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

FRAMEWORKS = ("tensorflow", "torch")
NO_FRAMEWORK = "none"


class Option(NamedTuple):
    """A workload's or pipeline's own option, set under ``options`` in a sweep.

    Options of one name are one axis, whoever has them: they share type, default and choices. ``choices`` empty: free.
    """

    type: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()


NO_OPTIONS: Mapping[str, Option] = MappingProxyType({})


class PipelineSpec(NamedTuple):
    """An input pipeline variant. ``frameworks`` maps a framework to the ``module:attr`` that builds it.

    ``formats`` and ``encodings`` are the data sets and their stored forms that it reads, ``uses`` the axes that have an
    effect on it. One that ``reads_data`` not makes up its samples, so the data set need not be there. One that takes
    ``prepared_only`` reads sets of files in other encodings than ``native`` alone. ``depth`` gives, for the axes of a
    point, the batches that its buffers hold when full, as far as that is known before it runs.
    """

    name: str
    description: str
    frameworks: Mapping[str, str]
    formats: tuple[str, ...]
    uses: tuple[str, ...]
    encodings: tuple[str, ...] = ("native",)
    options: Mapping[str, Option] = NO_OPTIONS
    reads_data: bool = True
    prepared_only: bool = False
    depth: Callable[[Any], int] = lambda axes: axes.prefetch or 0


def _tf_depth(default: int) -> Callable[[Any], int]:
    return lambda axes: default if axes.prefetch is None else axes.prefetch


def _batch_size_depth(axes: Any) -> int:
    """As many batches as a batch has images, where ``prefetch`` says nothing: Dell's old order."""
    return int(axes.batch_size if axes.prefetch is None else axes.prefetch)


def _worker_depth(axes: Any) -> int:
    """torch's ``prefetch_factor``, 2 unless set, for each worker."""
    return int(axes.workers * (axes.prefetch or 2))


def _memory_depth(axes: Any) -> int:
    """A Keras queue, or torch's workers."""
    return _worker_depth(axes) if axes.framework == "torch" else int(axes.max_queue_size if axes.workers else 0)


def _queue_depth(axes: Any) -> int:
    return int(axes.options.get("queue_capacity", QUEUE_CAPACITY) // axes.batch_size)


QUEUE_CAPACITY = 100_000
ALL_FORMATS = ("mnist", "cifar10", "imagenet", "caltech256", "chestxray14")
TREES = ("imagenet", "caltech256", "chestxray14")
CORRUPT = Option(str, "fail", "an image that cannot be decoded: fail names it and ends the run", ("fail", "skip"))
AUGMENT = Option(bool, False, "crop each image to 7/8 of its sides somewhere and mirror half of them")
ECHO_AT = Option(
    str,
    "before_augment",
    "where echo repeats a sample: each copy augmented anew, or alike",
    ("before_augment", "after_augment"),
)
BOXES = Option(
    str,
    "graph",
    "how the boxes of XML annotations are read: in graph, in python under its lock",
    ("graph", "python", "ignore"),
)
SAMPLE_OPTIONS = {"corrupt": CORRUPT, "augment": AUGMENT, "echo_at": ECHO_AT}
TF_DATA_AXES = ("workers", "prefetch", "shuffle_buffer", "echo")

BOX_CROPS = Option(bool, False, "one crop for each bounding box instead of the whole image, where a tree has boxes")
PERSISTENT_WORKERS = Option(bool, True, "workers live as long as the run; else each epoch starts new ones")
PIN_MEMORY = Option(bool, True, "batches in page-locked memory, where there is a GPU to copy them to")
TORCH_OPTIONS = SAMPLE_OPTIONS | {"pin_memory": PIN_MEMORY}
LOADER_OPTIONS = TORCH_OPTIONS | {"persistent_workers": PERSISTENT_WORKERS}
TORCH_AXES = ("workers", "prefetch", "echo")

PIPELINES = {
    spec.name: spec
    for spec in (
        PipelineSpec(
            name="memory",
            description="numpy arrays wholly in memory, read by a Keras PyDataset or a torch DataLoader",
            frameworks={
                "tensorflow": "harness.pipelines.keras_sequence:build",
                "torch": "harness.pipelines.torch_memory:build",
            },
            formats=("mnist", "cifar10"),
            uses=("workers", "max_queue_size", "multiprocessing", "prefetch"),
            depth=_memory_depth,
        ),
        PipelineSpec(
            name="tf_files",
            description="image files through tf.data: shard, shuffle, parallel map with a crop for each box, batch",
            frameworks={"tensorflow": "harness.pipelines.tf_files:build"},
            formats=TREES,
            uses=TF_DATA_AXES,
            encodings=("native", "jpeg"),
            options=SAMPLE_OPTIONS | {"boxes": BOXES},
            depth=_tf_depth(8),
        ),
        PipelineSpec(
            name="tf_records_old",
            description="TFRecord shards through tf.data, each rank mapping all records before it keeps its own",
            frameworks={"tensorflow": "harness.pipelines.tf_records:build_old"},
            formats=TREES,
            uses=TF_DATA_AXES,
            encodings=("tfrecord", "tfrecord_decoded"),
            options=SAMPLE_OPTIONS,
            depth=_batch_size_depth,
        ),
        PipelineSpec(
            name="tf_records_new",
            description="TFRecord shards through tf.data, each rank reading its own shards, interleaved",
            frameworks={"tensorflow": "harness.pipelines.tf_records:build_new"},
            formats=TREES,
            uses=TF_DATA_AXES,
            encodings=("tfrecord", "tfrecord_decoded"),
            options=SAMPLE_OPTIONS,
        ),
        PipelineSpec(
            name="tf_memory",
            description="images wholly in memory through tf.data; photographs and X-rays resized ahead (npy)",
            frameworks={"tensorflow": "harness.pipelines.tf_memory:build"},
            formats=ALL_FORMATS,
            uses=TF_DATA_AXES,
            encodings=("native", "npy"),
            options=SAMPLE_OPTIONS,
            prepared_only=True,
            depth=_tf_depth(2),
        ),
        PipelineSpec(
            name="tf_queue",
            description="threads that read, decode and enqueue samples into a TensorFlow queue",
            frameworks={"tensorflow": "harness.pipelines.tf_queue:build"},
            formats=("mnist",),
            uses=("workers", "echo"),
            encodings=("native", "tfrecord"),
            options={
                "corrupt": CORRUPT,
                "queue_capacity": Option(int, QUEUE_CAPACITY, "samples that the queue holds"),
                "enqueue_samples": Option(int, 32, "samples that a thread reads and enqueues at a time"),
                "fill_s": Option(float, 0.0, "seconds that the queue fills before the first step"),
            },
            depth=_queue_depth,
        ),
        PipelineSpec(
            name="torch_files",
            description="image files through a torch DataLoader: decoded whole and resized by Pillow in processes",
            frameworks={"torch": "harness.pipelines.torch_files:build"},
            formats=TREES,
            uses=TORCH_AXES,
            encodings=("native", "jpeg"),
            options=LOADER_OPTIONS | {"box_crops": BOX_CROPS},
            depth=_worker_depth,
        ),
        PipelineSpec(
            name="torch_lmdb",
            description="encoded images of LMDB shards through a torch DataLoader",
            frameworks={"torch": "harness.pipelines.torch_lmdb:build"},
            formats=TREES,
            uses=TORCH_AXES,
            encodings=("lmdb",),
            options=LOADER_OPTIONS | {"box_crops": BOX_CROPS},
            depth=_worker_depth,
        ),
        PipelineSpec(
            name="torch_memory",
            description="images resized ahead of time (npy) and held in memory, through a torch DataLoader",
            frameworks={"torch": "harness.pipelines.torch_prepared:build"},
            formats=TREES,
            uses=TORCH_AXES,
            encodings=("npy",),
            options=LOADER_OPTIONS,
            depth=_worker_depth,
        ),
        PipelineSpec(
            name="torch_webdataset",
            description="encoded images of tar shards, read in sequence by webdataset, through a torch DataLoader",
            frameworks={"torch": "harness.pipelines.torch_webdataset:build"},
            formats=TREES,
            uses=(*TORCH_AXES, "shuffle_buffer"),
            encodings=("webdataset",),
            options=TORCH_OPTIONS,
            depth=_worker_depth,
        ),
        PipelineSpec(
            name="torch_fast",
            description="threads that decode no more than is needed into the batch itself: what is possible on a CPU",
            frameworks={"torch": "harness.pipelines.torch_fast:build"},
            formats=TREES,
            uses=TORCH_AXES,
            encodings=("native", "jpeg", "lmdb"),
            options=TORCH_OPTIONS | {"box_crops": BOX_CROPS},
            depth=_worker_depth,
        ),
        PipelineSpec(
            name="synthetic",
            description="one batch, made once: the rate at which nothing but the model holds training up",
            frameworks={
                "tensorflow": "harness.pipelines.tf_synthetic:build",
                "torch": "harness.pipelines.torch_synthetic:build",
            },
            formats=ALL_FORMATS,
            uses=(),
            reads_data=False,
        ),
        PipelineSpec(
            name="scripted",
            description="replay's scripted producer and buffer; no data are read",
            frameworks={NO_FRAMEWORK: "harness.workloads.replay:build_pipeline"},
            formats=(),
            uses=("workers", "prefetch"),
        ),
    )
}
