"""Adaptive sweeps: which point of a planned grid to measure next, and when the recommendation is settled.

A few points that span the grid come first. Then fits to redrawn data (:func:`harness.analysis.capacity_fit.samples`)
stand for what is not known yet: each of them predicts every point and recommends one. A point is worth measuring as far
as its rate tells these recommendations apart: by linear regression over the samples, its measurement would lower the
variance of the recommended knobs by cov² / (var + error²). That, for each node-hour, decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.analysis.capacity import Group
from harness.analysis.capacity_fit import Model, model_of, samples
from harness.analysis.capacity_lanes import Floats, Setting
from harness.analysis.points import sort_key
from harness.analysis.recommend import FEWEST_POINTS, SHARE
from harness.analysis.recommend_settings import Layout, Search, fails

#: Fits to redrawn data on which a decision rests.
DRAWS = 60
#: The share of them that must recommend the same, give or take one step of the grid, before it is settled.
AGREED = 0.9
#: A point whose rate is predicted to be so near the highest shows the ceiling as well as the highest itself.
NEAR_TOP = 0.97
#: Points that a model needs to begin with.
FIRST = 3
#: Relative error that a measurement is taken to have.
ERROR = 0.02
_KNOBS = ("cores", "workers", "threads", "prefetch", "storage", "nodes", "ranks_per_node")


@dataclass(frozen=True)
class Candidate:
    """A planned point: its id, setting, and node-hours for all its repeats."""

    point_id: str
    setting: Setting
    node_hours: float


@dataclass(frozen=True)
class Decision:
    """``points`` to measure next, none where the answer is settled; ``reason`` in words; ``answer``: so far."""

    points: tuple[str, ...]
    reason: str
    answer: str | None

    @property
    def settled(self) -> bool:
        return not self.points


@dataclass(frozen=True)
class _View:
    """What the samples say: logarithms of rates, shape (samples, candidates), and the candidate each recommends."""

    candidates: Sequence[Candidate]
    measured: frozenset[str]
    best_rates: Floats
    recommended: int
    drawn: Floats
    drawn_recommended: Sequence[int]
    positions: Floats


def decide(
    group: Group, candidates: Sequence[Candidate], measured: frozenset[str], share: float = SHARE, count: int = 1
) -> Decision:
    """What to measure next of ``candidates``.

    Args:
        group: what was measured so far, as far as it can be trusted.
        measured: ids of the points measured, trusted or not; they are not proposed again.
        count: how many points to propose at once.
    """
    planned, candidates = len(candidates), [c for c in candidates if not fails(group, c.setting)] or candidates
    left = [c for c in candidates if c.point_id not in measured]
    first = [p for p in spanning(candidates) if p not in measured]
    if first:
        return Decision(tuple(first), f"{len(first)} points that span the grid come first", None)
    model = model_of(group)
    if model is None:
        return _without_model(left)
    view = _view(group, model, candidates, measured, share)
    answer = candidates[view.recommended].point_id
    if not left:
        return Decision((), "every point is measured", answer)
    reason, chosen = _unproven(view) or ("", -1)
    if not reason and _agreed(view) and len(group.observations) >= FEWEST_POINTS:
        return Decision((), f"settled after {len(measured)} of {planned} points", answer)
    points = [chosen] if reason else []
    points += [i for i in _most_telling(view, count) if i not in points]
    reason = reason or "it tells most about the recommendation for its node-hours"
    return Decision(tuple(candidates[i].point_id for i in points[:count]), reason, answer)


def _without_model(left: Sequence[Candidate]) -> Decision:
    if not left:
        return Decision((), "every point is measured, and they are too few for a model", None)
    cheapest = min(left, key=lambda c: c.node_hours)
    return Decision((cheapest.point_id,), "there are too few trusted points for a model", None)


def spanning(candidates: Sequence[Candidate]) -> list[str]:
    """Few points that show each knob's effect: the dearest corner, one for each varied knob alone at its other end, the
    opposite corner, and the middle of the grid, as far as the grid has them; nearest ones otherwise. No more
    than an eighth of the grid, but :data:`FIRST` in any case."""
    positions = _positions(candidates)
    varied = [k for k in range(positions.shape[1]) if np.ptp(positions[:, k]) > 0]
    low, high = positions.min(axis=0), positions.max(axis=0)
    middle = _middle(positions)
    wanted = [high]
    for knob in varied:
        alone = high.copy()
        alone[knob] = low[knob]
        wanted.append(alone)
    wanted += [low, middle]
    hours = np.array([c.node_hours for c in candidates])
    found: list[str] = []
    for target in wanted:
        away = np.abs(positions - target).sum(axis=1) + 1e-6 * hours / max(float(hours.max()), 1e-12)
        nearest = candidates[int(np.argmin(away))].point_id
        if nearest not in found:
            found.append(nearest)
    return found[: max(FIRST, len(candidates) // 8)]


def _middle(positions: Floats) -> Floats:
    """The value of each knob that lies nearest to the middle of its range."""
    centre = (positions.min(axis=0) + positions.max(axis=0)) / 2
    nearest = [float(min(set(column), key=lambda v: abs(v - c))) for column, c in zip(positions.T, centre, strict=True)]
    return np.array(nearest, dtype=np.float64)


def _positions(candidates: Sequence[Candidate]) -> Floats:
    """Where candidates lie in the grid: for each knob the rank of its value, shape (candidates, knobs)."""
    columns = []
    for knob in _KNOBS:
        values = [getattr(c.setting, knob) for c in candidates]
        ordered = sorted(set(values), key=lambda value: sort_key((value,)))
        columns.append([float(ordered.index(value)) for value in values])
    return np.ascontiguousarray(np.array(columns, dtype=np.float64).T)


def _view(group: Group, model: Model, candidates: Sequence[Candidate], measured: frozenset[str], share: float) -> _View:
    layouts: dict[Layout, list[Setting]] = {}
    for candidate in candidates:
        layout = Layout(candidate.setting.nodes, candidate.setting.ranks_per_node)
        layouts.setdefault(layout, []).append(candidate.setting)
    ordered = sorted(layouts, key=lambda layout: (layout.ranks, layout.nodes))
    search = Search({layout: layouts[layout] for layout in ordered}, share)
    index = {setting: i for i, setting in enumerate(c.setting for c in candidates)}
    back = [index[setting] for setting in search.settings]
    order = np.argsort(back)
    drawn = np.array([search.rates(f) for f in samples(model, group.observations, DRAWS)])
    best = search.rates(model.best)
    return _View(
        candidates=candidates,
        measured=measured,
        best_rates=best[order],
        recommended=back[search.choose(best)],
        drawn=np.log(drawn[:, order]),
        drawn_recommended=[back[search.choose(row)] for row in drawn],
        positions=_positions(candidates),
    )


def _agreed(view: _View) -> bool:
    """Whether nearly all samples recommend the same, give or take one step of each knob."""
    here = view.positions[view.recommended]
    steps = np.abs(view.positions[list(view.drawn_recommended)] - here).max(axis=1)
    return float(np.mean(steps <= 1)) >= AGREED


def _unproven(view: _View) -> tuple[str, int] | None:
    """The recommended point, then one near the ceiling, as long as they are not measured themselves."""
    measured = np.array([c.point_id in view.measured for c in view.candidates])
    if not _agreed(view):
        return None
    if not measured[view.recommended]:
        return "it is the recommendation so far, and was not measured yet", view.recommended
    near = view.best_rates >= NEAR_TOP * view.best_rates.max()
    if not (near & measured).any():
        return "it shows the ceiling that the recommendation is measured against", int(np.argmax(view.best_rates))
    return None


def _most_telling(view: _View, count: int) -> list[int]:
    """Candidates by how much their measurement would narrow the recommendation for each node-hour, best first."""
    knobs = view.positions[list(view.drawn_recommended)]
    rate = view.drawn[np.arange(len(view.drawn)), list(view.drawn_recommended)][:, None]
    unknown = np.concatenate([knobs, rate], axis=1)
    unknown = unknown - unknown.mean(axis=0)
    predicted = view.drawn - view.drawn.mean(axis=0)
    hours = np.array([max(c.node_hours, 1e-9) for c in view.candidates])
    open_ = np.array([c.point_id not in view.measured for c in view.candidates])
    found: list[int] = []
    for _ in range(min(count, int(open_.sum()))):
        variance = np.mean(predicted**2, axis=0) + ERROR**2
        gain = np.sum((unknown.T @ predicted / len(predicted)) ** 2, axis=0) / variance
        gain = np.where(open_, (gain + 1e-6 * variance) / hours, -math.inf)
        best = int(np.argmax(gain))
        found.append(best)
        open_[best] = False
        told = predicted[:, best] / variance[best]
        unknown = unknown - np.outer(told, predicted[:, best] @ unknown / len(predicted))
        predicted = predicted - np.outer(told, predicted[:, best] @ predicted / len(predicted))
    return found


def saving(candidates: Sequence[Candidate], measured: frozenset[str]) -> tuple[float, float]:
    """Node-hours of the points measured, and of the whole grid."""
    spent = sum(c.node_hours for c in candidates if c.point_id in measured)
    return spent, sum(c.node_hours for c in candidates)
