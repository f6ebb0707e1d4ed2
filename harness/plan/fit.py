"""Whether the parts of a point fit together, wherever it may run: framework, pipeline, data set, options."""

from __future__ import annotations

from collections.abc import Iterator

from harness.catalog import (
    COMM_FRAMEWORKS,
    COMMS,
    DATASETS,
    GPU_PRECISIONS,
    NO_FRAMEWORK,
    PIPELINES,
    WORKLOADS,
    PipelineSpec,
    WorkloadSpec,
    lookup,
    split_dataset,
)
from harness.config.axis_types import default_of
from harness.errors import nearest
from harness.model.axes import Axes
from harness.plan.place import Reason

#: axes that only a pipeline can use; set for one that does not, they would label equal measurements differently
PIPELINE_AXES = ("workers", "prefetch", "max_queue_size", "multiprocessing", "shuffle_buffer", "echo")


def misfits(axes: Axes) -> list[Reason]:
    """Every reason why the point makes no sense, by (code, reason); empty where it does.

    Raises:
        CatalogError: a name that the catalog does not know.
    """
    workload = lookup(WORKLOADS, axes.workload, "workload")
    if axes.framework not in workload.frameworks:
        choices = " or ".join(workload.frameworks)
        return [("framework", f"workload {workload.name} has no {axes.framework} version; it has {choices}")]
    pipeline = lookup(PIPELINES, axes.pipeline or "", "pipeline")
    lookup(COMMS, axes.comm or "", "comm")
    return [
        *_model(axes, workload),
        *_comm(axes),
        *_pipeline(axes, workload, pipeline),
        *_dataset(axes, workload, pipeline),
        *_options(axes, workload, pipeline),
        *_precision(axes),
    ]


def _model(axes: Axes, workload: WorkloadSpec) -> Iterator[Reason]:
    if axes.model is not None and axes.model not in workload.models:
        choices = nearest(axes.model, workload.models) if workload.models else "it has one model and takes no name"
        yield "model", f"workload {workload.name} has no model {axes.model}; {choices}"


def _comm(axes: Axes) -> Iterator[Reason]:
    able = COMM_FRAMEWORKS.get(axes.comm or "", (axes.framework,))
    if axes.framework not in able:
        choices = " or ".join(name for name in able if name)
        yield "comm", f"comm {axes.comm} exchanges gradients of {choices}, not of {axes.framework}"


def _pipeline(axes: Axes, workload: WorkloadSpec, pipeline: PipelineSpec) -> Iterator[Reason]:
    if axes.framework not in pipeline.frameworks:
        choices = " or ".join(pipeline.frameworks)
        yield "pipeline", f"pipeline {pipeline.name} has no {axes.framework} version; it has {choices}"
    for axis in PIPELINE_AXES:
        value = getattr(axes, axis)
        if axis not in pipeline.uses and value != default_of(axis):
            yield "unused_axis", f"pipeline {pipeline.name} does not use {axis}, which is {value}"


def _dataset(axes: Axes, workload: WorkloadSpec, pipeline: PipelineSpec) -> Iterator[Reason]:
    if workload.dataset is None or axes.dataset is None:
        if axes.dataset is not None:
            yield "dataset", f"workload {workload.name} reads no data, so {axes.dataset} cannot be its data set"
        return
    origin, form = split_dataset(axes.dataset)
    spec, own = lookup(DATASETS, form, "dataset"), lookup(DATASETS, workload.dataset, "dataset")
    if origin not in spec.origins:
        yield "dataset", f"there is no {origin} {form}; it can be {', '.join(spec.origins)}"
    if workload.datasets and form not in workload.datasets:
        yield "dataset", f"workload {workload.name} does not train on {form}; it takes {', '.join(workload.datasets)}"
    elif not workload.datasets and spec.sample_shape != own.sample_shape:
        yield (
            "dataset",
            f"samples of {form} are {_shape(spec)}; workload {workload.name} takes {_shape(own)} as in {own.name}",
        )
    elif form not in pipeline.formats:
        choices = ", ".join(pipeline.formats) or "none"
        yield "dataset", f"pipeline {pipeline.name} does not read {form}; it reads {choices}"
    if axes.encoding not in pipeline.encodings:
        choices = ", ".join(pipeline.encodings)
        yield "encoding", f"pipeline {pipeline.name} does not read {form} as {axes.encoding}; it reads {choices}"
    elif axes.encoding == "native" and pipeline.prepared_only and not spec.in_memory:
        yield "encoding", f"pipeline {pipeline.name} holds {form} resized ahead: convert it, and set encoding: npy"


def _shape(spec: object) -> str:
    return "×".join(str(n) for n in getattr(spec, "sample_shape", ()))


def _options(axes: Axes, workload: WorkloadSpec, pipeline: PipelineSpec) -> Iterator[Reason]:
    for name in axes.options:
        if name not in workload.options and name not in pipeline.options:
            whose = f"workload {workload.name} nor pipeline {pipeline.name}"
            yield "option", f"neither {whose} has the option {name}; set it with `when` for those that have"


def _precision(axes: Axes) -> Iterator[Reason]:
    if axes.precision in GPU_PRECISIONS and axes.gpus_per_rank == 0 and axes.framework != NO_FRAMEWORK:
        yield "precision", f"precision {axes.precision} needs a GPU: set gpus_per_rank: 1, or fp32 or bf16 on CPUs"
