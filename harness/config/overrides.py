"""``--set key=value``: a sweep with some values replaced from the command line."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from typing import Any

from harness.config.axis_types import annotation_of, axis_names, decode_axis, decode_axis_list
from harness.config.decode import INVALID, Decoder, full_annotation, user_key
from harness.config.grid_reader import AUTO, AUTOMATIC, STEPS_KEYS
from harness.config.scalars import as_bytes, as_duration_s
from harness.config.yaml_marks import Node, Scalar, Sequence, parse
from harness.errors import ConfigError, UserError, nearest
from harness.model.sweep import Grid, Sweep

_SWEEP_FIELDS = ("repeats", "order_seed", "walltime_s", "memory_bytes")
_STEPS = {f"steps.{key}": axis for key, axis in STEPS_KEYS.items()}


def override(sweep: Sweep, settings: SequenceOf[str]) -> Sweep:
    """``sweep`` with each ``key=value`` applied in turn.

    An axis takes the value in every combination, in place of all that the file says of it; several values, separated
    by commas, become the axis's matrix. ``repeats``, ``order_seed``, ``walltime``, ``memory``, ``steps.timed`` and
    ``steps.warmup`` can be set too.

    Raises:
        UserError: an unknown key or a value that does not fit.
    """
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting!r} has no '='; write --set axis=value, such as --set cpu_cores=1,2")
        try:
            sweep = _apply(sweep, key.strip(), text)
        except ConfigError as error:
            # lines of a file mean nothing here
            problems = (problem._replace(line=0) for problem in error.problems)
            raise ConfigError(problems) from None
    return sweep


def _apply(sweep: Sweep, key: str, text: str) -> Sweep:
    decoder = Decoder(f"--set {key}")
    fields = {user_key(name): name for name in _SWEEP_FIELDS}
    if key in fields:
        value = _sweep_value(decoder, fields[key], _node(text, decoder.file))
        decoder.finish()
        return sweep.model_copy(update={fields[key]: value})
    axis = _STEPS.get(key, key)
    if axis == "steps_timed" and text.strip() == AUTO:
        axis, least = AUTOMATIC["timed"]
        text = str(least)
    if annotation_of(axis) is None:
        raise UserError(f"--set: unknown key {key!r}; {nearest(key, [*fields, *_STEPS, *axis_names()])}")
    values = _axis_values(decoder, axis, text)
    decoder.finish()
    return sweep.model_copy(update={"grids": tuple(pinned(grid, axis, values) for grid in sweep.grids)})


def _sweep_value(decoder: Decoder, field: str, node: Node) -> Any:
    if field == "walltime_s":
        # on the command line nothing is lost to YAML: 12:00:00 arrives as it was typed
        quoted = Scalar(node.text, True, "str", 0) if isinstance(node, Scalar) else node
        return decoder.scalar(quoted, as_duration_s, "walltime")
    if field == "memory_bytes":
        return decoder.scalar(node, as_bytes, "memory")
    return decoder.decode(node, full_annotation(Sweep.model_fields[field]), field)


def _axis_values(decoder: Decoder, axis: str, text: str) -> tuple[Any, ...]:
    if axis == "steps_warmup" and text.strip() == AUTO:
        return (None,)
    node = _node(text, decoder.file)
    if annotation_of(axis) is list:
        return (decode_axis(decoder, axis, 0, node, "--set"),)
    if isinstance(node, Scalar) and not node.quoted and "," in text:
        node = Sequence(tuple(_node(part, decoder.file) for part in text.split(",")), 0)
    if isinstance(node, Sequence):
        return decode_axis_list(decoder, axis, 0, node, "--set")
    value = decode_axis(decoder, axis, 0, node, "--set")
    return () if value is INVALID else (value,)


def _node(text: str, file: str) -> Node:
    node = parse(text, file)
    return Scalar("", False, "null", 0) if node is None else node


def pinned(grid: Grid, axis: str, values: tuple[Any, ...]) -> Grid:
    """``grid`` with the axis at these values and nowhere else."""
    matrix, base = dict(grid.matrix), {k: v for k, v in grid.base.items() if k != axis}
    if len(values) > 1:
        matrix[axis] = values  # an axis that is varied already keeps its place
    else:
        matrix.pop(axis, None)
        base[axis] = values[0]
    groups = ({k: v for k, v in group.items() if k != axis} for group in grid.zip)
    return grid.model_copy(
        update={
            "base": base,
            "matrix": matrix,
            "zip": tuple(group for group in groups if group),
            "include": tuple({k: v for k, v in item.items() if k != axis} for item in grid.include),
            "when": tuple(
                c.model_copy(update={"values": {k: v for k, v in c.values.items() if k != axis}}) for c in grid.when
            ),
            "derive": {k: v for k, v in grid.derive.items() if k != axis},
        }
    )
