"""JSON Schema (draft 2020-12) of sweep and cluster files as people write them, generated from the models.

Editors use it for completion and first checks. It is no substitute for loading a file: names across files, lengths of
zip groups and expressions are checked there alone.
"""

from __future__ import annotations

from typing import Any

from harness.config.axis_types import OPTION_PREFIX, axis_annotations, choices, options
from harness.config.decode import adapter, user_key
from harness.config.scales import SIZES
from harness.model.axes import Axes
from harness.model.cluster import Cluster
from harness.model.sweep import Sweep

Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
DURATION: Schema = {
    "type": "string",
    "description": 'a duration: "HH:MM:SS" in quotes, or 90s, 30m, 2h, 1d',
    "pattern": r"^\s*((\d+-)?\d+:[0-5]?\d(:[0-5]?\d)?|\d+\s*(s|min|m|h|d))\s*$",
}
SIZE: Schema = {
    "type": "string",
    "description": "a size with its unit: 80gb, 512mb, 4GiB (powers of 1024)",
    "pattern": r"^\s*\d+(\.\d+)?\s*([kmgtpKMGTP]([iI]?[bB])?|[bB])\s*$",
}
EXPRESSION: Schema = {"type": ["string", "integer", "number", "boolean"], "description": "an expression over the axes"}
_UNITS = {"_s": DURATION, "_bytes": SIZE}


def cluster_schema() -> Schema:
    """The schema of ``configs/clusters/*.yml``."""
    schema = Cluster.model_json_schema()
    for model in (schema, *schema["$defs"].values()):
        _as_written(model)
    node = schema["$defs"]["NodeType"]["properties"]
    for fact in ("sockets", "cores_per_socket", "gpus", "memory"):
        node[fact] = {"anyOf": [node[fact], {"const": "auto"}]}
    schema["properties"]["node"] = {"anyOf": [{"$ref": "#/$defs/NodeType"}, {"const": "auto"}]}
    return {"$schema": DRAFT, "title": "cluster", **{k: v for k, v in schema.items() if k != "title"}}


def sweep_schema() -> Schema:
    """The schema of ``configs/sweeps/*.yml``."""
    grid = {
        key: {"$ref": f"#/$defs/{key}"}
        for key in ("base", "matrix", "zip", "include", "exclude", "when", "derive", "steps")
    }
    head = Sweep.model_json_schema()
    _as_written(head)
    own = {key: value for key, value in head["properties"].items() if key not in ("grids", "file")}
    parts = {"type": "array", "items": {"type": "object", "properties": grid, "additionalProperties": False}}
    sizes = _closed({key: {"type": "integer", "minimum": 1, "description": text} for key, text in SIZES.items()})
    data = {"type": "object", "additionalProperties": sizes, "description": own["data"]["description"]}
    return {
        "$schema": DRAFT,
        "title": "sweep",
        "type": "object",
        "properties": {**own, **grid, "parts": parts, "data": data, "scales": _scales(own, grid, data)},
        "required": ["name"],
        "additionalProperties": False,
        "$defs": _grid_definitions(),
    }


def _scales(head: Schema, grid: Schema, data: Schema) -> Schema:
    keys = ("cluster", "repeats", "walltime", "memory")
    scale = {key: head[key] for key in keys} | {
        key: grid[key] for key in ("base", "matrix", "when", "exclude", "steps")
    }
    values = _closed({**scale, "data": data})
    return {"type": "object", "additionalProperties": values, "description": head["scales"]["description"]}


def _as_written(model: Schema) -> None:
    """Rename a model's properties to the keys people write, with durations and sizes in words."""
    properties = {}
    for name, value in model.get("properties", {}).items():
        unit = next((schema for suffix, schema in _UNITS.items() if name.endswith(suffix)), None)
        optional = any(option.get("type") == "null" for option in value.get("anyOf", ()))
        if unit and optional:
            properties[user_key(name)] = {"anyOf": [unit, {"type": "null"}], "default": None}
        else:
            properties[user_key(name)] = unit or {k: v for k, v in value.items() if k != "title"}
    model["properties"] = properties
    model["required"] = [user_key(name) for name in model.get("required", ())]
    model.pop("title", None)


def axis_schemas() -> dict[str, Schema]:
    """The schema of every axis and ``options.<name>``."""
    schemas: dict[str, Schema] = {}
    for name, annotation in axis_annotations().items():
        info = Axes.model_fields[name]
        schema = {k: v for k, v in adapter(annotation).json_schema().items() if k not in ("title", "description")}
        valid = choices(name)
        if valid is not None:
            schema = {"enum": valid if info.is_required() else [*valid, None]}
        schemas[name] = {**schema, "description": info.description or name}
    for name, option in options().items():
        schema = {"enum": list(option.choices)} if option.choices else adapter(option.type).json_schema()
        schemas[OPTION_PREFIX + name] = {**schema, "description": option.help}
    return schemas


def _grid_definitions() -> dict[str, Schema]:
    axes = axis_schemas()
    nested = {k.removeprefix(OPTION_PREFIX): v for k, v in axes.items() if k.startswith(OPTION_PREFIX)}
    values = _closed({**axes, "options": _closed(nested)})
    lists = {k: _list(v) for k, v in axes.items()}
    nested_lists = {k: _list(v) for k, v in nested.items()}
    axis_lists = _closed({**lists, "options": _closed(nested_lists)})
    where = {"anyOf": [EXPRESSION, {"$ref": "#/$defs/base"}]}
    group = {"$ref": "#/$defs/matrix"}
    counts = {"warmup": axes["steps_warmup"], "timed": axes["steps_timed"]}
    steps = _closed({key: {"anyOf": [count, {"const": "auto"}]} for key, count in counts.items()})
    conditional = {**_closed({"where": where, "set": {"$ref": "#/$defs/base"}}), "required": ["where", "set"]}
    excluded = {"anyOf": [{**_closed({"where": where}), "required": ["where"]}, {"$ref": "#/$defs/base"}]}
    return {
        "base": values,
        "matrix": axis_lists,
        "zip": {"anyOf": [group, {"type": "array", "items": group}]},
        "include": {"type": "array", "items": {"$ref": "#/$defs/base"}},
        "exclude": {"type": "array", "items": excluded},
        "when": {"type": "array", "items": conditional},
        "derive": _closed(dict.fromkeys(axes, EXPRESSION)),
        "steps": steps,
    }


def _closed(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item, "minItems": 1}
