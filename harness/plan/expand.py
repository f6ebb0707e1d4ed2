"""A sweep's grids to its combinations: product, zip, exclude, include, conditional and derived values.

The order is GitHub's (https://docs.github.com/actions, "Running variations of jobs in a workflow"): the product of
matrix and zip is made, exclude removes from it, include then adds values to the combinations it fits or becomes a
combination of its own. ``when`` and ``derive`` follow. Exclusion looks at a combination with its conditional and
derived values; what include adds as a new combination is never excluded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from harness.config.axis_types import checked, default_of
from harness.config.expressions import ExpressionError, evaluate
from harness.config.sweep_file import derive_order
from harness.errors import ConfigError, Problem
from harness.model.sweep import Condition, Expression, Grid, Sweep
from harness.plan.defaults import fill

Combination = dict[str, Any]

MAX_COMBINATIONS = 200_000


class Expansion(NamedTuple):
    """The combinations of a sweep, in the order written, and how many its exclude took away.

    ``notes`` say which conditions held for no combination, which is most often a mistake.
    """

    combinations: list[Combination]
    excluded: int
    notes: tuple[str, ...] = ()


def expand(sweep: Sweep) -> Expansion:
    """All combinations of a sweep's grids; equal ones may occur several times.

    Raises:
        ConfigError: an expression has no value for some combination.
    """
    combinations: list[Combination] = []
    expanders = [_Expander(grid, sweep.file) for grid in sweep.grids]
    for expander in expanders:
        combinations += expander.run()
    return Expansion(combinations, sum(e.excluded for e in expanders), _notes(expanders, sweep.file))


def _notes(expanders: list[_Expander], file: str) -> tuple[str, ...]:
    """Conditions that held nowhere; one that stands for several parts counts as used when it held in any of them."""
    held = {line for expander in expanders for line in expander.held}
    unused = {
        (condition.line, kind)
        for expander in expanders
        for kind, conditions in (
            ("exclude", expander.grid.exclude),
            ("when", tuple(item.condition for item in expander.grid.when)),
        )
        for condition in conditions
        if condition.line and condition.line not in held
    }
    return tuple(f"{file}:{line}: this {kind} holds for no combination" for line, kind in sorted(unused))


def product(grid: Grid) -> Iterator[Combination]:
    """The product of matrix and zip groups, the first axis varying slowest; one empty combination where both lack."""
    factors = [[{axis: value} for value in values] for axis, values in grid.matrix.items()]
    for group in grid.zip:
        factors.append([dict(zip(group, row, strict=True)) for row in zip(*group.values(), strict=True)])
    for parts in itertools.product(*factors):
        yield {axis: value for part in parts for axis, value in part.items()}


def product_size(grid: Grid) -> int:
    """How many combinations :func:`product` yields."""
    groups = (len(next(iter(group.values()), ())) for group in grid.zip)
    return math.prod((*(len(values) for values in grid.matrix.values()), *groups))


class _Expander:
    def __init__(self, grid: Grid, file: str):
        self.grid = grid
        self.file = file
        self.excluded = 0
        self.held: set[int] = set()
        self.derived = [(axis, grid.derive[axis]) for axis in derive_order(grid.derive)]

    def run(self) -> list[Combination]:
        size = product_size(self.grid)
        if size > MAX_COMBINATIONS:
            what = f"matrix and zip make {size:,} combinations; a sweep may have {MAX_COMBINATIONS:,}"
            raise ConfigError([Problem(self.file, 0, what, "vary fewer axes at once, or split the sweep")])
        kept = []
        for combination in product(self.grid) if self.grid.varied or not self.grid.include else ():
            if self.grid.exclude and self._is_excluded(combination):
                self.excluded += 1
            else:
                kept.append(combination)
        return [self._resolve(combination) for combination in self._include(kept)]

    def _is_excluded(self, combination: Combination) -> bool:
        values = fill(self._resolve(combination))
        # all are evaluated, so that the effect of each is known
        holding = [self._holds(condition, values) for condition in self.grid.exclude]
        return any(holding)

    def _include(self, kept: list[Combination]) -> list[Combination]:
        """Values of an include may replace those that an earlier include added, never those of matrix or zip."""
        varied = set(self.grid.varied)
        results = [dict(combination) for combination in kept]
        added: list[Combination] = []
        for values in self.grid.include:
            keys = varied & set(values)
            fitting = [new for old, new in zip(kept, results, strict=True) if all(old[k] == values[k] for k in keys)]
            for combination in fitting:
                combination.update(values)
            if not fitting:
                added.append(dict(values))
        return results + added

    def _resolve(self, combination: Combination) -> Combination:
        """Base values beneath, conditional and derived ones above."""
        values = {**self.grid.base, **combination}
        for conditional in self.grid.when:
            if self._holds(conditional.condition, fill(values)):
                values.update(conditional.values)
        for axis, expression in self.derived:
            values[axis] = self._derived(axis, expression, values)
        return values

    def _holds(self, condition: Condition, values: Combination) -> bool:
        if condition.where is not None:
            holds = bool(self._evaluate(condition.where, values))
        else:
            holds = all(values.get(axis, default_of(axis)) == value for axis, value in condition.match.items())
        if holds:
            self.held.add(condition.line)
        return holds

    def _derived(self, axis: str, expression: Expression, values: Combination) -> Any:
        try:
            return checked(axis, self._evaluate(expression, fill(values)))
        except ValueError as error:
            raise self._error(expression, f"derive {axis}: {expression.text!r} {error}", values) from None

    def _evaluate(self, expression: Expression, values: Combination) -> Any:
        try:
            return evaluate(expression.text, values)
        except ExpressionError as error:
            raise self._error(expression, str(error), values) from None

    def _error(self, expression: Expression, what: str, values: Combination) -> ConfigError:
        shown = ", ".join(f"{axis}={values[axis]}" for axis in self.grid.varied if axis in values)
        return ConfigError([Problem(self.file, expression.line, what + (f" at {shown}" if shown else ""))])
