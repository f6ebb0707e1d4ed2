"""The settings that a recommendation may choose from, and the choice of the cheapest that is good enough."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.analysis.capacity import Group
from harness.analysis.capacity_fit import Fit
from harness.analysis.capacity_lanes import Design, Floats, Setting

#: How far beyond the largest measured value the model is looked at.
REACH = 2.0
#: Values of one knob looked at, at most.
_MOST_VALUES = 14
#: Knobs that are whole numbers without an end.
COUNTED = ("cores", "workers", "threads")


@dataclass(frozen=True)
class Layout:
    """Nodes and ranks on each: what decides the size of a job, apart from its cores."""

    nodes: int
    ranks_per_node: int

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


def by_layout(group: Group, limits: Mapping[str, int]) -> dict[Layout, list[Setting]]:
    """The candidates of each measured layout, smallest job first; none of a layout where all failed.

    Cores, workers and threads take whole numbers from the least measured to :data:`REACH` times the largest; prefetch,
    storage and layout only measured values. Knobs that went together when measured go together here.

    Args:
        limits: the most that may be asked for: ``cpu_cores`` per node, ``workers``, ``parallel_threads``.
    """
    measured = {Layout(s.nodes, s.ranks_per_node) for s in group.settings}
    layouts = sorted(measured, key=lambda layout: (layout.ranks, layout.nodes))
    found = {layout: _candidates(group, layout, limits) for layout in layouts}
    works = {layout: [s for s in settings if not fails(group, s)] for layout, settings in found.items()}
    return {layout: settings for layout, settings in works.items() if settings}


def fails(group: Group, setting: Setting) -> bool:
    """Whether it is a broken setting, or one with more of what a loader takes at the same cores, storage and layout."""
    return any(_more_of(setting, broken) for broken in group.broken)


def _more_of(setting: Setting, other: Setting) -> bool:
    """Whether it is ``other``, or that with more workers, threads or prefetch: what takes memory and processes."""
    least = {name: getattr(other, name) for name in ("workers", "threads", "prefetch")}
    known = {name: value for name, value in least.items() if None not in (value, getattr(setting, name))}
    return replace(setting, **{name: known.get(name, getattr(setting, name)) for name in least}) == other and all(
        getattr(setting, name) >= value for name, value in known.items()
    )


def _candidates(group: Group, layout: Layout, limits: Mapping[str, int]) -> list[Setting]:
    cores = limits["cpu_cores"] // layout.ranks_per_node if "cpu_cores" in limits else None
    most = {
        "cores": cores,
        "workers": limits.get("workers", _no_more_than(cores, group.values("workers"))),
        "threads": limits.get("parallel_threads", _no_more_than(cores, group.values("threads"))),
    }
    followed = _followers(group)
    values: dict[str, list[Any]] = {}
    for knob in (*COUNTED, "prefetch", "storage"):
        measured = group.values(knob)
        if knob in followed:
            continue
        values[knob] = _counts(measured, most[knob]) if knob in COUNTED else measured
    share = {s.storage: s.readers_share for s in group.settings}
    first = Setting(nodes=layout.nodes, ranks_per_node=layout.ranks_per_node)
    found = []
    for combination in itertools.product(*values.values()):
        chosen = dict(zip(values, combination, strict=True))
        for knob, (leader, table) in followed.items():
            chosen[knob] = _followed(chosen[leader], table)
        found.append(replace(first, **chosen, readers_share=share[chosen["storage"]]))
    return found


def _no_more_than(cores: int | None, measured: Sequence[Any]) -> int | None:
    """Workers or threads worth looking at: those measured, and no more than there are cores on the node for a rank."""
    known = [value for value in measured if value is not None]
    return None if cores is None or not known else max(cores, *map(int, known))


def _counts(measured: Sequence[Any], most: int | None) -> list[Any]:
    """Whole numbers of the range, thinned out geometrically; what was measured is among them."""
    known = [value for value in measured if value is not None]
    if len(known) < 2:
        return list(measured)
    top = max(known) * REACH if most is None else min(max(known) * REACH, most)
    grid = np.geomspace(max(min(known), 1), max(top, 1), _MOST_VALUES)
    whole = {int(round(value)) for value in grid} | {int(v) for v in known if v == int(v)}
    return sorted(value for value in whole if min(known) <= value <= top) or list(measured)


def _followers(group: Group) -> dict[str, tuple[str, dict[float, Any]]]:
    """Counted knobs whose value another counted knob fixed in all that was measured: knob → (leader, its table)."""
    found: dict[str, tuple[str, dict[float, Any]]] = {}
    for knob, leader in itertools.permutations(COUNTED, 2):
        table: dict[float, Any] = {}
        pairs = [(getattr(s, leader), getattr(s, knob)) for s in group.settings]
        together = all(a is not None and b is not None and table.setdefault(a, b) == b for a, b in pairs)
        independent = len(set(table.values())) < 2
        if together and not independent and knob not in found and leader not in found:
            found[knob] = (leader, table)
    return found


def _followed(value: float, table: Mapping[float, Any]) -> Any:
    """The value that goes with the leader's: of the table, between its entries in proportion, at its ends the last."""
    known = sorted(table)
    between = float(np.interp(value, known, [float(table[k]) for k in known]))
    return max(1, int(round(between)))


class Search:
    """Candidates by layout, sorted from cheap to dear, and the choice among them by any fit."""

    def __init__(self, candidates: Mapping[Layout, Sequence[Setting]], share: float):
        self.share = share
        self.layouts = list(candidates)
        self.settings: list[Setting] = []
        self.parts: list[slice] = []
        for layout in self.layouts:
            ordered = sorted(candidates[layout], key=cost_order)
            self.parts.append(slice(len(self.settings), len(self.settings) + len(ordered)))
            self.settings += ordered
        self.design = Design.of(self.settings)

    def rates(self, fit: Fit) -> Floats:
        return fit.rates(self.settings)

    def cheapest(self, rates: Floats, part: slice, ceiling: float) -> int | None:
        """Index of the first candidate of a layout that reaches the share of ``ceiling``."""
        good = np.flatnonzero(rates[part] >= self.share * ceiling)
        if not len(good):
            return None
        first = int(good[0])
        # equal requests that differ in storage alone: the faster one
        same = [
            i
            for i in good
            if cost_order(self.settings[part.start + i]) == cost_order(self.settings[part.start + first])
        ]
        fastest = max(int(i) for i in same if rates[part][i] == max(rates[part][same]))
        return int(part.start) + fastest

    def choose(self, rates: Floats) -> int:
        """Index of the recommended setting: the smallest layout that reaches the share of the overall ceiling."""
        ceiling = float(np.max(rates))
        found = (self.cheapest(rates, part, ceiling) for part in self.parts)
        return next(index for index in found if index is not None)


def cost_order(setting: Setting) -> tuple[float, ...]:
    threads = -1 if setting.threads is None else setting.threads
    prefetch = -1 if setting.prefetch is None else setting.prefetch
    return (setting.cores * setting.ranks, setting.workers, threads, prefetch)
