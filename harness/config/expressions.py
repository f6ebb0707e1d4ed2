"""Expressions in sweeps (``where`` and ``derive``), evaluated by simpleeval: no access to Python beyond these names."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

from simpleeval import EvalWithCompoundTypes, InvalidExpression

from harness.config.axis_types import OPTION_PREFIX, axis_annotations, options
from harness.errors import nearest
from harness.model.axes import Axes

FUNCTIONS = {
    "min": min,
    "max": max,
    "round": round,
    "ceil": math.ceil,
    "floor": math.floor,
    "abs": abs,
    "len": len,
    "int": int,
    "float": float,
}
#: values that follow from the axes, for use in expressions
FACTS = ("ranks", "cores_per_rank", "gpus_per_node")
_AXIS_DEFAULTS = {name: info.default for name, info in Axes.model_fields.items() if name != "options"}


class ExpressionError(ValueError):
    """An expression that cannot be read or has no value; the message names no file."""


@cache
def names_used(text: str) -> frozenset[str]:
    """The names an expression uses, options as ``options.<name>``; checks syntax and names on the way.

    Raises:
        ExpressionError: with the valid names.
    """
    tree = _parse(text)
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    used = {ast.unparse(node) for node in attributes}
    functions = {
        node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    local = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    inside = {id(node.value) for node in attributes}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in inside and node.id not in functions | local:
            used.add(node.id)
    _check_names(used, functions)
    return frozenset(used)


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """The value of an expression over a point's ``values``; axes not given have their default.

    Raises:
        ExpressionError: division by zero, comparison of unset values and the like.
    """
    evaluator = EvalWithCompoundTypes(functions=FUNCTIONS, names=namespace(values))
    try:
        return evaluator.eval(text, previously_parsed=_parse(text))
    except (
        InvalidExpression,
        ArithmeticError,
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
        RecursionError,
    ) as error:
        raise ExpressionError(f"{text!r} has no value: {error}") from None


def namespace(values: Mapping[str, Any]) -> dict[str, Any]:
    """The names that an expression sees."""
    names = {**_AXIS_DEFAULTS, **{k: v for k, v in values.items() if not k.startswith(OPTION_PREFIX)}}
    given = {k.removeprefix(OPTION_PREFIX): v for k, v in values.items() if k.startswith(OPTION_PREFIX)}
    names["options"] = SimpleNamespace(**{name: o.default for name, o in options().items()} | given)
    names["ranks"] = names["nodes"] * names["ranks_per_node"]
    names["cores_per_rank"] = names["cpu_cores"] // names["ranks_per_node"]
    names["gpus_per_node"] = names["gpus_per_rank"] * names["ranks_per_node"]
    return names


@cache
def _parse(text: str) -> ast.expr:
    if len(text) > 2000:
        raise ExpressionError("the expression is longer than 2000 characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ExpressionError(f"{text!r} is no expression: {reason}") from None
    return tree.body


def _check_names(used: set[str], functions: set[str]) -> None:
    valid = [*axis_annotations(), *FACTS, *(OPTION_PREFIX + name for name in options())]
    for name in sorted(used):
        if name not in valid:
            is_option = name.startswith(OPTION_PREFIX)
            fitting = [choice for choice in valid if choice.startswith(OPTION_PREFIX) == is_option]
            quotes = "" if is_option else f"; text stands in quotes: '{name}'"
            raise ExpressionError(f"an expression has no name {name!r}; {nearest(name, fitting)}{quotes}")
    for name in sorted(functions):
        if name not in FUNCTIONS:
            raise ExpressionError(f"an expression has no function {name!r}; {nearest(name, list(FUNCTIONS))}")
