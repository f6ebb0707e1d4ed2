"""Sweep files: YAML to :class:`harness.model.sweep.Sweep`."""

from __future__ import annotations

import graphlib
from pathlib import Path
from typing import Any

from harness.catalog import WORKLOADS
from harness.config.decode import Decoder, Special
from harness.config.expressions import names_used
from harness.config.grid_reader import PART_KEYS, GridReader
from harness.config.scales import read_data, read_scales
from harness.config.yaml_marks import Mapping, parse_mapping, read_mapping
from harness.model.sweep import Expression, Grid, Sweep


def load_sweep(path: Path) -> Sweep:
    """The sweep in a file.

    Raises:
        ConfigError: with all problems of the file.
    """
    return _build(read_mapping(path), str(path))


def parse_sweep(text: str, file: str = "sweep.yml") -> Sweep:
    """The sweep in ``text``; ``file`` is named in problems."""
    return _build(parse_mapping(text, file), file)


def _build(root: Mapping, file: str) -> Sweep:
    decoder = Decoder(file)
    reader = GridReader(decoder)
    special: dict[str, Special] = {key: getattr(reader, f"read_{key}") for key in (*PART_KEYS, "parts")}
    heads: dict[str, Special] = {
        "scales": lambda node: read_scales(decoder, reader, node),
        "data": lambda node: read_data(decoder, node),
    }
    values = decoder.fields(root, Sweep, "a sweep", {**special, **heads}, hidden=("grids", "file"))
    common = {key: values.pop(key) for key in special if key in values}
    if not decoder.problems:
        _check_name(decoder, root, values["name"])
    grids = _grids(decoder, root, common)
    decoder.finish()
    return Sweep(**values, grids=tuple(grids), file=file)


def _check_name(decoder: Decoder, root: Mapping, name: str) -> None:
    problem = name_problem(name)
    if problem:
        decoder.problem(root.entries["name"].line, f"name: {problem}")


def name_problem(name: str) -> str:
    """Why ``name`` cannot name a campaign's directory; empty where it can."""
    if not name.strip():
        return "a name must not be empty"
    if "/" in name or name.startswith("."):
        return f"{name!r} cannot name a directory: no '/' in it and no '.' at its start"
    return f"{name[:20]!r}… is longer than 200 bytes" if len(name.encode()) > 200 else ""


def _grids(decoder: Decoder, root: Mapping, common: dict[str, Any]) -> list[Grid]:
    """One grid for each part, or one for the whole file; what stands outside the parts holds for each of them."""
    parts = common.pop("parts", None) or [{}]
    grids = [Grid(**_with_steps(decoder, root, _merge(common, part))) for part in parts]
    for grid in grids:
        _check_grid(decoder, root, grid)
    return grids


def _merge(common: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Mappings are joined, the part's own values winning; lists are joined one after another."""
    merged = dict(common)
    for key, value in part.items():
        old = common.get(key)
        merged[key] = value if old is None else {**old, **value} if isinstance(value, dict) else (*old, *value)
    return merged


def _with_steps(decoder: Decoder, root: Mapping, grid: dict[str, Any]) -> dict[str, Any]:
    """``steps`` as base values of their axes."""
    steps, base = grid.get("steps", {}), grid.get("base", {})
    for axis in sorted(set(steps) & set(base)):
        decoder.problem(_line(root, "base"), f"base gives {axis} although steps gives it too", "keep one of them")
    return {**{key: value for key, value in grid.items() if key != "steps"}, "base": {**steps, **base}}


def _line(root: Mapping, key: str) -> int:
    """The line of a key of the file; its first line where the key stands in a part."""
    return root.entries[key].line if key in root.entries else root.line


def _check_grid(decoder: Decoder, root: Mapping, grid: Grid) -> None:
    """What only the grid as a whole can show: an axis varied twice, a circle of derived values, no workload."""
    varied = grid.varied
    for axis in sorted({axis for axis in varied if varied.count(axis) > 1}):
        what = f"{axis} is varied twice, in matrix and zip or in two groups of zip"
        decoder.problem(_line(root, "zip"), what, "keep one of them")
    for conditional in grid.when:
        for axis in sorted(set(conditional.values) & set(varied)):
            line = conditional.condition.line
            decoder.problem(line, f"when sets {axis}, which the matrix varies", "use derive or exclude instead")
    try:
        derive_order(grid.derive)
    except graphlib.CycleError as error:
        circle = " → ".join(error.args[1])
        decoder.problem(_line(root, "derive"), f"derived values need each other in a circle: {circle}")
    if "workload" not in _given(grid) and not decoder.problems:
        decoder.problem(root.line, "no workload is given", f"write it in base or matrix: {', '.join(WORKLOADS)}")


def _given(grid: Grid) -> set[str]:
    """Every axis that the grid gives a value anywhere."""
    included = {axis for values in grid.include for axis in values}
    conditional = {axis for item in grid.when for axis in item.values}
    return {*grid.base, *grid.varied, *grid.derive, *included, *conditional}


def derive_order(derive: dict[str, Expression]) -> list[str]:
    """The derived axes, each after those its expression uses; its own name means the value before deriving.

    Raises:
        graphlib.CycleError: two derived values need each other.
    """
    graph = {axis: (names_used(e.text) & set(derive)) - {axis} for axis, e in derive.items()}
    return list(graphlib.TopologicalSorter(graph).static_order())
