"""Sweep files: YAML to :class:`harness.model.sweep.Sweep`."""

from __future__ import annotations

import graphlib
from pathlib import Path
from typing import Any

from harness.config.axis_types import OPTION_PREFIX, decode_axis, decode_axis_list, is_axis
from harness.config.decode import INVALID, Decoder, Special
from harness.config.expressions import ExpressionError, names_used
from harness.config.scalars import as_text
from harness.config.yaml_marks import Entry, Mapping, Node, Scalar, parse_mapping, read_mapping
from harness.model.sweep import Condition, Conditional, Expression, Grid, Sweep

STEPS_KEYS = {"warmup": "steps_warmup", "timed": "steps_timed"}


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
    reader = _GridReader(decoder)
    grid_keys: dict[str, Special] = {key: getattr(reader, f"read_{key}") for key in Grid.model_fields}
    special: dict[str, Special] = {**grid_keys, "steps": reader.read_steps, "parts": reader.read_parts}
    node = Mapping({key: e for key, e in root.entries.items() if key not in ("file", "grids")}, root.line)
    for key in set(root.entries) - set(node.entries):
        decoder.unknown_key(key, root.entries[key].line, "a sweep", {*special, "name", "repeats", "walltime"})
    values = decoder.fields(node, _Head, "a sweep", special)
    common = {key: values.pop(key) for key in [*grid_keys, "steps", "parts"] if key in values}
    if not decoder.problems:
        _check_name(decoder, root, values["name"])
    grids = _grids(decoder, root, common)
    decoder.finish()
    return Sweep(**values, grids=tuple(grids), file=file)


class _Head(Sweep):
    """A sweep's own keys: the grids are read apart, and the file's name is not the author's to write."""

    grids: tuple[Grid, ...] = ()


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
    steps = common.pop("steps", {})
    parts = common.pop("parts", None) or [{}]
    grids = []
    for part in parts:
        merged = _merge(common, part)
        merged["base"] = {**steps, **merged.get("base", {})}
        for axis in set(steps) & set(common.get("base", {})):
            decoder.problem(root.line, f"base gives {axis} although steps gives it too", "keep one of them")
        grid = Grid(**merged)
        _check_grid(decoder, root, grid)
        grids.append(grid)
    return grids


def _merge(common: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Mappings are joined, the part's own values winning; lists are joined one after another."""
    merged = dict(common)
    for key, value in part.items():
        old = common.get(key)
        merged[key] = value if old is None else {**old, **value} if isinstance(value, dict) else (*old, *value)
    return merged


def _check_grid(decoder: Decoder, root: Mapping, grid: Grid) -> None:
    """What only the grid as a whole can show: an axis varied twice, a circle of derived values, no workload."""
    line = root.line
    varied = grid.varied
    for axis in sorted({axis for axis in varied if varied.count(axis) > 1}):
        decoder.problem(line, f"{axis} is varied twice, in matrix and zip or in two groups of zip", "keep one of them")
    for conditional in grid.when:
        for axis in sorted(set(conditional.values) & set(varied)):
            where = conditional.condition.where.line if conditional.condition.where else line
            decoder.problem(where, f"when sets {axis}, which the matrix varies", "use derive or exclude instead")
    try:
        derive_order(grid.derive)
    except graphlib.CycleError as error:
        decoder.problem(line, f"derived values need each other in a circle: {' → '.join(error.args[1])}")
    given = {
        *grid.base,
        *varied,
        *grid.derive,
        *(k for i in grid.include for k in i),
        *(k for w in grid.when for k in w.values),
    }
    if "workload" not in given and not decoder.problems:
        decoder.problem(line, "no workload is given", "write it in base or matrix")


def derive_order(derive: dict[str, Expression]) -> list[str]:
    """The derived axes, each after those its expression uses; its own name means the value before deriving.

    Raises:
        graphlib.CycleError: two derived values need each other.
    """
    graph = {axis: (names_used(e.text) & set(derive)) - {axis} for axis, e in derive.items()}
    return list(graphlib.TopologicalSorter(graph).static_order())


class _GridReader:
    """Reads the keys of a grid: one method for each, named ``read_<key>``."""

    def __init__(self, decoder: Decoder):
        self.decoder = decoder

    def read_base(self, node: Node) -> dict[str, Any]:
        return self._values(node, "base")

    def read_matrix(self, node: Node) -> dict[str, tuple[Any, ...]]:
        if isinstance(node, Mapping) and not node.entries:
            self.decoder.problem(node.line, "the matrix is empty", "give it an axis, or leave it out")
        return self._lists(node, "matrix")

    def read_zip(self, node: Node) -> tuple[dict[str, tuple[Any, ...]], ...]:
        nodes = (node,) if isinstance(node, Mapping) else self.decoder.sequence(node, "zip")
        return tuple(self._zip_group(group) for group in nodes)

    def _zip_group(self, node: Node) -> dict[str, tuple[Any, ...]]:
        before = len(self.decoder.problems)
        group = self._lists(node, "zip")
        lengths = {axis: len(values) for axis, values in group.items()}
        if len(self.decoder.problems) == before and len(set(lengths.values())) > 1:
            counts = ", ".join(f"{axis} {n}" for axis, n in lengths.items())
            self.decoder.problem(node.line, f"axes of a zip group have different numbers of values: {counts}")
        return group

    def read_include(self, node: Node) -> tuple[dict[str, Any], ...]:
        return tuple(self._values(item, "include") for item in self.decoder.sequence(node, "include"))

    def read_exclude(self, node: Node) -> tuple[Condition, ...]:
        items = self.decoder.sequence(node, "exclude")
        return tuple(self._condition(item, "exclude", direct=True) for item in items)

    def read_when(self, node: Node) -> tuple[Conditional, ...]:
        return tuple(self._conditional(item) for item in self.decoder.sequence(node, "when"))

    def _conditional(self, node: Node) -> Conditional:
        entries = self.decoder.mapping(node, "when")
        for key, entry in entries.items():
            if key not in ("where", "set"):
                self.decoder.unknown_key(key, entry.line, "when", ["where", "set"])
        if not {"where", "set"} <= set(entries):
            self.decoder.problem(node.line, "an item of when needs both `where` and `set`")
            return Conditional(condition=Condition(), values={})
        return Conditional(condition=self._condition(node, "when"), values=self._values(entries["set"].value, "set"))

    def read_derive(self, node: Node) -> dict[str, Expression]:
        derived = {}
        for key, entry in self.decoder.mapping(node, "derive").items():
            expression = self._expression(entry, f"derive {key}")
            if is_axis(self.decoder, key, entry.line, "derive") and expression:
                derived[key] = expression
        return derived

    def read_steps(self, node: Node) -> dict[str, Any]:
        steps: dict[str, Any] = {}
        for key, entry in self.decoder.mapping(node, "steps").items():
            if key not in STEPS_KEYS:
                self.decoder.unknown_key(key, entry.line, "steps", STEPS_KEYS)
                continue
            automatic = key == "warmup" and isinstance(entry.value, Scalar) and entry.value.text == "auto"
            value = None if automatic else decode_axis(self.decoder, STEPS_KEYS[key], entry.line, entry.value, "steps")
            if value is not INVALID:
                steps[STEPS_KEYS[key]] = value
        return steps

    def read_parts(self, node: Node) -> list[dict[str, Any]]:
        parts = []
        for item in self.decoder.sequence(node, "parts"):
            part = {}
            for key, entry in self.decoder.mapping(item, "parts").items():
                if key in Grid.model_fields:
                    part[key] = getattr(self, f"read_{key}")(entry.value)
                else:
                    self.decoder.unknown_key(key, entry.line, "a part", Grid.model_fields)
            parts.append(part)
        return parts

    def _condition(self, node: Node, what: str, direct: bool = False) -> Condition:
        """``where:`` with an expression or a mapping of values; ``direct``: the mapping itself, as in exclude."""
        entries = self.decoder.mapping(node, what)
        if "where" not in entries:
            if direct and not entries:
                self.decoder.problem(node.line, f"an item of {what} is empty and would match every combination")
            return Condition(match=self._values(node, what))
        if direct and len(entries) > 1:
            self.decoder.problem(node.line, "where stands alone in an item of exclude", "join conditions with `and`")
        where = entries["where"]
        if isinstance(where.value, Mapping):
            return Condition(match=self._values(where.value, f"where of {what}"))
        return Condition(where=self._expression(where, f"where of {what}"))

    def _expression(self, entry: Entry, what: str) -> Expression | None:
        text = self.decoder.scalar(entry.value, as_text, what, kind="an expression")
        if text is INVALID:
            return None
        try:
            names_used(text)
        except ExpressionError as error:
            self.decoder.problem(entry.line, f"{what}: {error}")
            return None
        return Expression(text=text, line=entry.line)

    def _values(self, node: Node, what: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, entry in self._flat(node, what).items():
            value = decode_axis(self.decoder, key, entry.line, entry.value, what)
            if value is not INVALID:
                values[key] = value
        return values

    def _lists(self, node: Node, what: str) -> dict[str, tuple[Any, ...]]:
        return {
            key: decode_axis_list(self.decoder, key, entry.line, entry.value, what)
            for key, entry in self._flat(node, what).items()
        }

    def _flat(self, node: Node, what: str) -> dict[str, Entry]:
        """The entries of a mapping, with ``options: {x: …}`` as ``options.x``."""
        flat: dict[str, Entry] = {}
        for key, entry in self.decoder.mapping(node, what).items():
            if key != OPTION_PREFIX[:-1]:
                flat[key] = entry
                continue
            for name, inner in self.decoder.mapping(entry.value, "options").items():
                flat[OPTION_PREFIX + name] = inner
        return flat
