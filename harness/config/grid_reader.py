"""The keys of a sweep that say which combinations it has: one method for each."""

from __future__ import annotations

from typing import Any

from harness.config.axis_types import OPTION_PREFIX, decode_axis, decode_axis_list, is_axis
from harness.config.decode import INVALID, Decoder
from harness.config.expressions import ExpressionError, names_used
from harness.config.scalars import as_text
from harness.config.yaml_marks import Entry, Mapping, Node, Scalar
from harness.model.sweep import Condition, Conditional, Expression, Grid

PART_KEYS = (*Grid.model_fields, "steps")
STEPS_KEYS = {"warmup": "steps_warmup", "timed": "steps_timed"}
AUTO = "auto"
#: what ``auto`` stands for under steps: axis and value. A rate known to ± 2 % is near what repeats scatter by.
AUTOMATIC: dict[str, tuple[str, float | None]] = {"warmup": ("steps_warmup", None), "timed": ("interval_percent", 2.0)}


class GridReader:
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
            if isinstance(entry.value, Scalar) and entry.value.text == AUTO:
                axis, automatic = AUTOMATIC[key]
                steps[axis] = automatic
                continue
            value = decode_axis(self.decoder, STEPS_KEYS[key], entry.line, entry.value, "steps")
            if value is not INVALID:
                steps[STEPS_KEYS[key]] = value
        return steps

    def read_parts(self, node: Node) -> list[dict[str, Any]]:
        parts = []
        for item in self.decoder.sequence(node, "parts"):
            part = {}
            for key, entry in self.decoder.mapping(item, "parts").items():
                if key in PART_KEYS:
                    part[key] = getattr(self, f"read_{key}")(entry.value)
                else:
                    self.decoder.unknown_key(key, entry.line, "a part", PART_KEYS)
            parts.append(part)
        return parts

    def _condition(self, node: Node, what: str, direct: bool = False) -> Condition:
        """``where:`` with an expression or a mapping of values; ``direct``: the mapping itself, as in exclude."""
        entries = self.decoder.mapping(node, what)
        if "where" not in entries:
            if direct and not entries:
                self.decoder.problem(node.line, f"an item of {what} is empty and would match every combination")
            return Condition(match=self._values(node, what), line=node.line)
        if direct and len(entries) > 1:
            self.decoder.problem(node.line, "where stands alone in an item of exclude", "join conditions with `and`")
        where = entries["where"]
        if isinstance(where.value, Mapping):
            return Condition(match=self._values(where.value, f"where of {what}"), line=where.line)
        return Condition(where=self._expression(where, f"where of {what}"), line=where.line)

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
