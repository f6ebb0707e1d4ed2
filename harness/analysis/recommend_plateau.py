"""What measurements alone tell of a plateau, whatever the model makes of the rise to it.

A rise that the model has no shape for makes all its errors larger, those of the plateau too, and its fits to redrawn
data then disagree about settings whose rates are well known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.analysis import arrays
from harness.analysis.capacity import PRIOR_FREEDOM, Observation
from harness.analysis.capacity_fit import FLOOR
from harness.analysis.capacity_lanes import Setting
from harness.analysis.recommend_settings import COUNTED, REACH
from harness.analysis.stats import CONFIDENCE

#: A plateau is measured at so many points, over so many times all that was varied.
_FEWEST, _NARROWEST = 3, 2.0


@dataclass(frozen=True)
class Plateau:
    """``first``: the least measured setting on it; ``best``: the fastest; ``below``: the largest surely not on it.

    ``sure``: so many standard errors either way hold a rate.
    """

    first: Observation
    best: Observation
    below: Setting | None
    points: int
    sure: float

    def bounds(self, seen: Observation) -> tuple[float, float]:
        """Of the rate of ``first`` or ``best``, in images/s."""
        away = math.exp(self.sure * error(seen))
        return seen.rate / away, seen.rate * away


def plateau_of(observations: Sequence[Observation], share: float, slack: float) -> Plateau | None:
    """The plateau at the end of a chain of settings, each with more than the one before; None where none is sure.

    The rate of its first point is known to within ``slack``. It reaches ``share`` of the best, surely
    ``share - slack`` of it, and as much of what the line through the plateau's points allows at
    :data:`~harness.analysis.recommend_settings.REACH` times the last.
    """
    chain = sorted(observations, key=lambda o: _amounts(o.setting))
    if not _is_chain([o.setting for o in chain]):
        return None
    start = next(i for i, o in enumerate(chain) if o.rate >= share * max(o.rate for o in chain))
    flat = _by_luck(chain[start:])
    first, best = flat[0], max(flat, key=lambda o: o.rate)
    # the knob that grew least: what was not varied does not count
    sizes = np.array([_amounts(o.setting) for o in flat])[:, np.ptp([_amounts(o.setting) for o in chain], axis=0) > 0]
    wide = (sizes[0] > 0).all() and (sizes[-1] >= _NARROWEST * sizes[0]).all()
    # how runs differ is not known of a point that was run once
    if len(flat) < _FEWEST or not wide or not all(o.runs > 1 and o.se_log > 0 for o in flat):
        return None
    freedom = PRIOR_FREEDOM + sum(o.runs - 1 for o in flat)
    sure, margin = arrays.t_quantile(0.5 + CONFIDENCE / 2, freedom), -math.log(share - slack)
    grows = _growth(flat, np.log(sizes[:, 0]), sure) > margin
    if sure * error(first) > slack or _at_most(best, first, sure) > margin or grows:
        return None
    below = [o.setting for o in chain[:start] if _at_most(o, best, sure) < math.log(share)]
    return Plateau(first, best, below[-1] if below else None, len(flat), sure)


def _by_luck(flat: Sequence[Observation]) -> list[Observation]:
    """With no smaller error than is usual on the plateau: a point whose repeats agreed by luck is no surer."""
    usual = math.sqrt(sum(o.se_log**2 for o in flat) / len(flat))
    return [replace(o, se_log=max(o.se_log, usual)) for o in flat]


def error(seen: Observation) -> float:
    """Standard error of the rate's logarithm: no less than the model's floor."""
    return math.hypot(seen.se_log, FLOOR)


def _at_most(one: Observation, other: Observation, sure: float) -> float:
    """Upper end of the logarithm of the rates' ratio."""
    return math.log(one.rate / other.rate) + sure * math.hypot(error(one), error(other))


def _growth(flat: Sequence[Observation], sizes: np.ndarray, sure: float) -> float:
    """Upper end of what a weighted line adds to the logarithm, from the first point to ``REACH`` times the last."""
    weights = np.array([error(o) ** -2 for o in flat])
    away = sizes - np.average(sizes, weights=weights)
    certainty = float(np.sum(weights * away**2))
    slope = float(np.sum(weights * away * np.log([o.rate for o in flat]))) / certainty
    return (slope + sure / math.sqrt(certainty)) * float(sizes[-1] - sizes[0] + math.log(REACH))


def _amounts(setting: Setting) -> tuple[float, ...]:
    return tuple(float(getattr(setting, name) or 0) for name in COUNTED)


def _is_chain(settings: Sequence[Setting]) -> bool:
    """Whether they differ in counted knobs alone, and each has more of them than the one before."""
    least = {name: getattr(settings[0], name) for name in COUNTED}
    steps = np.diff([_amounts(s) for s in settings], axis=0)
    alike = all(replace(s, **least) == settings[0] for s in settings)
    return alike and bool((steps >= 0).all() and steps.any(axis=1).all())
