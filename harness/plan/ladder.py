"""The differential ladder: a point and its rungs, each of which does one part of a step more than the one below.

    compute       one batch already on the device, no gradient exchange
    exchange      the same, gradients averaged over the ranks (where there are several)
    copy          one batch in host memory, copied for each step
    preparation   decoded samples in memory (where a pipeline holds them)
    read          the point's own pipeline, files in the page cache
    fetch         the same, files not in the page cache
    as asked      the point itself

The rungs are points like any other: they differ in ``feed``, ``comm``, ``cache``, ``pipeline``, ``encoding``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.catalog import PIPELINES, reads_data, split_dataset
from harness.config.axis_types import OPTION_PREFIX

#: framework → the pipeline that holds decoded samples in memory, and the encoding that it reads
IN_MEMORY = {"tensorflow": ("tf_memory", "npy"), "torch": ("torch_memory", "npy")}


def rungs(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The combinations of a point's ladder, the point itself last; ``values`` has its defaults filled in."""
    point = dict(values)
    ranks = int(point.get("nodes", 1)) * int(point.get("ranks_per_node", 1))
    held = {**point, "feed": "device", "cache": "unknown"}
    ladder = [{**held, "comm": "none"}]
    if ranks > 1 and point.get("comm") != "none":
        ladder.append(held)
    ladder.append({**held, "feed": "host"})
    if reads_files(point):
        if (memory := _in_memory(point)) is not None:
            ladder.append(memory)
        ladder += [{**point, "cache": "warm"}, {**point, "cache": "cold"}]
    return [*ladder, point]


def reads_files(values: Mapping[str, Any]) -> bool:
    """Whether the point's pipeline reads files while steps are timed."""
    pipeline, dataset = values.get("pipeline"), values.get("dataset")
    in_memory = {"memory", "tf_queue", *(name for name, _ in IN_MEMORY.values())}
    return bool(dataset) and pipeline not in in_memory and reads_data(str(dataset), pipeline)


def _in_memory(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """The point with its decoded samples in memory; None where no pipeline holds this data set."""
    name, encoding = IN_MEMORY.get(str(values.get("framework")), ("", ""))
    spec, old = PIPELINES.get(name), PIPELINES.get(str(values.get("pipeline")))
    _, form = split_dataset(str(values.get("dataset")))
    if spec is None or old is None or form not in spec.formats:
        return None
    lost = {axis for axis in old.uses if axis not in spec.uses}
    lost |= {OPTION_PREFIX + option for option in old.options if option not in spec.options}
    kept = {axis: value for axis, value in values.items() if axis not in lost}
    return {**kept, "pipeline": name, "encoding": encoding, "cache": "unknown"}
