"""``scales:`` of a sweep file: the same sweep in another size, so that what runs on a cluster can be tried here."""

from __future__ import annotations

from typing import Any

from harness.catalog import DATASETS
from harness.config.decode import INVALID, Decoder, Special
from harness.config.grid_reader import GridReader
from harness.config.overrides import pinned
from harness.config.yaml_marks import Node
from harness.errors import UserError, nearest
from harness.model.axes import PositiveInt
from harness.model.sweep import Condition, Grid, Scale, Sweep

#: what can be said under ``data:`` of a data set to be made
SIZES = {
    "train": "training samples",
    "test": "test samples",
    "classes": "classes of imagenet",
    "side": "edge of decoded images in pixels, of converted sets",
    "shard_samples": "samples in a shard, of converted sets",
}
_KEYS = ("base", "matrix", "when", "exclude")


def read_scales(decoder: Decoder, reader: GridReader, node: Node) -> dict[str, Scale]:
    """Each variant by its name."""
    return {
        name: _read_scale(decoder, reader, entry.value, f"scale {name}")
        for name, entry in decoder.mapping(node, "scales").items()
    }


def _read_scale(decoder: Decoder, reader: GridReader, node: Node, what: str) -> Scale:
    special: dict[str, Special] = {key: getattr(reader, f"read_{key}") for key in (*_KEYS, "steps")}
    special["data"] = lambda sizes: read_data(decoder, sizes)
    before = len(decoder.problems)
    values = decoder.fields(node, Scale, what, special)
    if len(decoder.problems) > before:
        return Scale()
    steps = values.pop("steps", {})
    return Scale(**{**values, "base": {**values.get("base", {}), **steps}})


def read_data(decoder: Decoder, node: Node) -> dict[str, dict[str, int]]:
    """Data set → sizes."""
    found: dict[str, dict[str, int]] = {}
    made = [f"{origin}:{spec.name}" for spec in DATASETS.values() for origin in spec.origins if origin != "real"]
    for name, entry in decoder.mapping(node, "data").items():
        if name not in made:
            decoder.problem(entry.line, f"data: {name!r} is no data set that can be made", nearest(name, made))
        found[name] = {}
        for key, size in decoder.mapping(entry.value, f"data of {name}").items():
            if key not in SIZES:
                decoder.unknown_key(key, size.line, f"data of {name}", SIZES)
            elif (value := decoder.decode(size.value, PositiveInt, key)) is not INVALID:
                found[name][key] = value
    return found


def scaled(sweep: Sweep, name: str) -> Sweep:
    """The variant ``name`` of a sweep, called ``<sweep>-<name>`` so that its results lie apart.

    Raises:
        UserError: the sweep has no such variant.
    """
    if name not in sweep.scales:
        where = sweep.file or sweep.name
        known = nearest(name, list(sweep.scales)) if sweep.scales else "it has no `scales:`"
        raise UserError(f"--scale: {where} has no scale {name!r}; {known}")
    scale = sweep.scales[name]
    own = {key: getattr(scale, key) for key in ("cluster", "repeats", "walltime_s", "memory_bytes")}
    changes: dict[str, Any] = {key: value for key, value in own.items() if value is not None}
    grids = tuple(_scaled_grid(grid, scale, sweep) for grid in sweep.grids)
    data = {**sweep.data, **scale.data}
    return sweep.model_copy(update={**changes, "name": f"{sweep.name}-{name}", "grids": grids, "data": data})


def _scaled_grid(grid: Grid, scale: Scale, sweep: Sweep) -> Grid:
    somewhere = {axis for other in sweep.grids for axis in other.varied}
    # conditions that fit nothing at another size are no mistake; without a line no note is made of them
    exclude = [_unmarked(condition) for condition in (*grid.exclude, *scale.exclude)]
    grid = grid.model_copy(update={"exclude": tuple(exclude)})
    for axis, value in scale.base.items():
        grid = pinned(grid, axis, (value,))
    for axis, values in scale.matrix.items():
        if axis in grid.varied or axis not in somewhere:
            grid = pinned(grid, axis, values)
    when = tuple(item.model_copy(update={"condition": _unmarked(item.condition)}) for item in (*grid.when, *scale.when))
    return grid.model_copy(update={"when": when})


def _unmarked(condition: Condition) -> Condition:
    return condition.model_copy(update={"line": 0})
