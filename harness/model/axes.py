"""Axes: everything that says *what* is measured. Their non-default values make a point's id."""

import hashlib
import json
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.model.names import ID_LENGTH as ID_LENGTH

Scalar = bool | int | float | str
PositiveInt = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]


class Frozen(BaseModel):
    """Base of all vocabulary models: immutable, no unknown fields, no silent coercion between types.

    Their modules do not postpone annotations (``from __future__``): pydantic would have to compile the text of each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Axes(Frozen):
    """The varied and fixed parameters of one measurement.

    A field whose value equals the default here does not enter the point's id, so a new axis must default to the
    behaviour before it existed. Fields that default to None are filled from the catalog when planning (the
    workload's own batch size, data set, pipeline …), so that writing the default and leaving it out give one id.
    """

    workload: str = Field(description="dcgan_mnist, resnet20_cifar10, resnet_imagenet, lenet_mnist, replay")
    framework: str | None = Field(None, description="tensorflow, torch, or none for replay")
    model: str | None = Field(None, description="model variant where the workload has several, such as resnet34")
    dataset: str | None = Field(None, description="data set: a real one (mnist) or origin:format (synthetic:mnist)")
    pipeline: str | None = Field(None, description="input pipeline variant")
    batch_size: PositiveInt | None = Field(None, description="samples per rank and step")
    cpu_cores: PositiveInt = Field(1, description="CPU cores per node, shared evenly by the ranks there")
    nodes: PositiveInt = Field(1, description="nodes of the job")
    ranks_per_node: PositiveInt = Field(1, description="MPI ranks on each node")
    gpus_per_rank: Count = Field(0, description="GPUs of each rank")
    workers: Count = Field(0, description="loader workers per rank; 0 loads in the training thread")
    parallel_threads: PositiveInt | None = Field(None, description="threads per rank; unset: its cores")
    prefetch: Count | None = Field(None, description="batches buffered ahead; unset: the pipeline's own default")
    max_queue_size: PositiveInt = Field(10, description="Keras queue length, in batches")
    multiprocessing: bool = Field(False, description="loader workers are processes instead of threads (Keras)")
    shuffle_buffer: Count | None = Field(None, description="samples in the shuffle buffer; unset: pipeline's own")
    storage: str = Field("hpctmp", description="logical storage that the data are read from: hpctmp, scratch, …")
    encoding: str = Field("native", description="form of the stored samples; native: as the data set is published")
    cache: Literal["unknown", "cold", "warm"] = Field("unknown", description="page-cache state made and verified")
    comm: str | None = Field(None, description="gradient exchange: none, mpi4py, horovod, torch_ddp")
    precision: Literal["fp32", "tf32", "bf16", "fp16"] = "fp32"
    channels_last: bool = False
    compile: bool = Field(False, description="XLA for TensorFlow, torch.compile for torch")
    feed: Literal["pipeline", "host", "device"] = Field(
        "pipeline", description="what feeds the steps: the pipeline, or one batch held in host memory or on the device"
    )
    batch_interval: PositiveInt = Field(1, description="consecutive steps that use one fetched batch")
    echo: PositiveInt = Field(1, description="times each sample is repeated by example echoing")
    steps_warmup: Count | None = Field(None, description="steps before the timed ones; None: auto")
    steps_timed: PositiveInt = Field(100, description="timed steps; at least so many where interval_percent is set")
    interval_percent: Annotated[float, Field(gt=0, lt=100)] | None = Field(
        None, description="time more steps until the rate is known to ± this, or the walltime nears; unset: no more"
    )
    profile: bool = Field(False, description="write a profiler's trace of some steps after the timed ones")
    seed: Count = Field(0, description="seed of weights and shuffling; repeat r uses seed + r")
    options: dict[str, Scalar | list[Scalar]] = Field(
        default_factory=dict, description="the workload's or pipeline's own options, named in the catalog"
    )

    @property
    def ranks(self) -> int:
        """MPI ranks of the whole job."""
        return self.nodes * self.ranks_per_node

    def non_default(self) -> dict[str, Any]:
        """The fields that differ from their default: what identifies the point."""
        return self.model_dump(exclude_defaults=True)


class Point(Frozen):
    """One combination of axis values, identified by what it measures."""

    axes: Axes

    @cached_property
    def id(self) -> str:
        """First 16 hex digits of SHA-256 over the canonical JSON of the non-default axes."""
        return point_id(self.axes)


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def point_id(axes: Axes) -> str:
    return hashlib.sha256(_CANONICAL.encode(axes.non_default()).encode()).hexdigest()[:ID_LENGTH]
