"""The declared type of every axis and option, and the names that an axis can take."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import cache
from typing import Any

from pydantic import ValidationError

from harness.catalog import COMMS, DATASETS, ENCODINGS, FRAMEWORKS, NO_FRAMEWORK, PIPELINES, WORKLOADS, Option
from harness.config.decode import INVALID, Decoder, adapter, full_annotation
from harness.config.yaml_marks import Node, Sequence
from harness.errors import nearest
from harness.model.axes import Axes

OPTION_PREFIX = "options."
#: whole numbers are below it, as in files
LARGEST = 10**18
_DEFAULTS = {name: info.default for name, info in Axes.model_fields.items()}


@cache
def axis_annotations() -> dict[str, Any]:
    """Axis name → its type with constraints; ``options`` is left out, its entries are axes of their own."""
    return {name: full_annotation(info) for name, info in Axes.model_fields.items() if name != "options"}


@cache
def options() -> dict[str, Option]:
    """Every option of a workload or pipeline that the catalog names, by its name."""
    found: dict[str, Option] = {}
    for workload in WORKLOADS.values():
        found.update(workload.options)
    for pipeline in PIPELINES.values():
        found.update(pipeline.options)
    return found


def axis_names() -> list[str]:
    """All keys that a matrix can have."""
    return [*axis_annotations(), *(OPTION_PREFIX + name for name in options())]


def nearest_axis(key: str) -> str:
    """The valid axes as text, or the valid options where an option is meant; the nearest one first."""
    is_option = key.startswith(OPTION_PREFIX)
    return nearest(key, [name for name in axis_names() if name.startswith(OPTION_PREFIX) == is_option])


def choices(axis: str) -> list[str] | None:
    """The names an axis or option can take, None where it is free."""
    if axis.startswith(OPTION_PREFIX):
        return list(options()[axis.removeprefix(OPTION_PREFIX)].choices) or None
    tables: dict[str, list[str]] = {
        "workload": list(WORKLOADS),
        "model": sorted({model for workload in WORKLOADS.values() for model in workload.models}),
        "framework": [*FRAMEWORKS, NO_FRAMEWORK],
        "pipeline": list(PIPELINES),
        "comm": list(COMMS),
        "encoding": list(ENCODINGS),
        "dataset": [
            spec.name if origin == "real" else f"{origin}:{spec.name}"
            for spec in DATASETS.values()
            for origin in spec.origins
        ],
    }
    return tables.get(axis)


def decode_axis(decoder: Decoder, key: str, line: int, node: Node, what: str) -> Any:
    """The value of axis ``key``, or INVALID; ``what`` says where it stands, such as ``base``."""
    if not is_axis(decoder, key, line, what):
        return INVALID
    value = decoder.decode(node, annotation_of(key), key)
    valid = choices(key)
    if valid is not None and isinstance(value, str) and value not in valid:
        return decoder.problem(node.line, f"{key}: {value!r} is not known", nearest(value, valid))
    return value


def annotation_of(key: str) -> Any:
    """The type of an axis or ``options.<name>``; None where there is no such axis."""
    if key.startswith(OPTION_PREFIX):
        option = options().get(key.removeprefix(OPTION_PREFIX))
        return option.type if option else None
    return axis_annotations().get(key)


def is_axis(decoder: Decoder, key: str, line: int, what: str) -> bool:
    """Whether ``key`` names an axis or option; the problem is noted where it does not."""
    if annotation_of(key) is not None:
        return True
    decoder.problem(line, f"unknown axis {key!r} in {what}", nearest_axis(key))
    return False


def decode_axis_list(decoder: Decoder, key: str, line: int, node: Node, what: str) -> tuple[Any, ...]:
    """The values of an axis in a matrix or zip: a list with at least one value, none of them twice."""
    if not is_axis(decoder, key, line, what):
        return ()
    if not isinstance(node, Sequence):
        decoder.problem(node.line, f"{key} in {what} takes a list of values", "a single value belongs in base")
        return ()
    if not node.items:
        decoder.problem(node.line, f"{key} in {what} is an empty list, so no point would be left", "give it a value")
    values = [decode_axis(decoder, key, item.line, item, what) for item in node.items]
    return tuple(value for value in values if value is not INVALID)


def checked(key: str, value: Any) -> Any:
    """``value`` as the axis takes it; for values that come from an expression, where 2.0 may stand for 2.

    Raises:
        ValueError: with what the axis takes.
    """
    if isinstance(value, int) and abs(value) >= LARGEST:
        raise ValueError("gives a number that is too large")
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST:
        with suppress(ValidationError):
            return adapter(annotation_of(key)).validate_python(int(value), strict=True)
    try:
        value = adapter(annotation_of(key)).validate_python(value, strict=True)
    except ValidationError as error:
        wanted = error.errors()[0]["msg"].replace("Input should be", "it must be")
        raise ValueError(f"gives {value!r}; {wanted}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"gives {value!r}; it must be finite")
    valid = choices(key)
    if valid is not None and isinstance(value, str) and value not in valid:
        raise ValueError(f"gives {value!r}; {nearest(value, valid)}")
    return value


def default_of(key: str) -> Any:
    """The value of an axis or option that a sweep does not give."""
    if key.startswith(OPTION_PREFIX):
        return options()[key.removeprefix(OPTION_PREFIX)].default
    return _DEFAULTS[key]
