"""Rates of which one is chosen for being the best: intervals that hold whichever it is. Pure.

The fastest of several points is the fastest partly by luck, and its own interval knows nothing of that. Intervals that
hold for *all* of the points at once hold for any one of them, however it was chosen: Šidák's (J. Am. Stat. Assoc. 62
(1967) 626), each of k at 0.95^(1/k). As k only those points count that may be the best, whose intervals at the level of
all points reach that of the one that was (Gupta, Technometrics 7 (1965) 225): a slow point is not chosen by luck.

Two or three repeats that agree by luck do not tell the spread between runs, and of many points such are found; so each
variance is averaged with that of all points, which counts for no more than four degrees of freedom of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from harness.analysis import arrays
from harness.analysis.stats import CONFIDENCE, Estimate

#: For how many degrees of freedom of its own the scatter of all points counts beside that of one.
PRIOR_FREEDOM = 4.0
#: As good as known.
_MOST_FREEDOM = 1e6


def chosen_from(estimates: Sequence[Estimate]) -> tuple[list[Estimate], int]:
    """The same values with intervals that hold whichever is chosen, and how many of them may be the best.

    None is narrower than the estimate's own. Where no point was repeated each knows itself alone; where one alone may
    be the best nothing was chosen by luck, and intervals stay.
    """
    if len(estimates) < 2:
        return list(estimates), len(estimates)
    moderated = _moderated(estimates)
    wide = [_widened(one, known, len(estimates)) for one, known in zip(estimates, moderated, strict=True)]
    best = max(wide, key=lambda one: one.value)
    able = sum(one.high >= best.low or not one.known or not best.known for one in wide)
    if able < 2:
        return list(estimates), able
    return [_widened(one, known, able) for one, known in zip(estimates, moderated, strict=True)], able


def _moderated(estimates: Sequence[Estimate]) -> list[tuple[float, float]]:
    """Standard error and degrees of freedom of each, its variance averaged with that of all."""
    repeated = [e for e in estimates if e.kind == "between" and e.n > 1 and e.known]
    freedom = sum(e.n - 1 for e in repeated)
    if not freedom:
        return [(e.se_log, e.df) for e in estimates]
    usual = sum((e.n - 1) * e.n * e.se_log**2 for e in repeated) / freedom
    return [_with(usual, freedom, e) for e in estimates]


def _with(usual: float, freedom: float, own: Estimate) -> tuple[float, float]:
    runs = max(own.n, 1) if own.kind == "between" else 1
    prior = min(PRIOR_FREEDOM, freedom - (runs - 1))
    # where the runs' own errors are the larger ones the estimate rests on these, and knows more than its repeats do
    degrees = min(max(own.df, runs - 1.0), _MOST_FREEDOM) if runs > 1 else 0.0
    variance = (prior * usual + (degrees * runs * own.se_log**2 if degrees else 0.0)) / (prior + degrees)
    return math.sqrt(variance / runs), prior + degrees


def _widened(own: Estimate, moderated: tuple[float, float], count: int) -> Estimate:
    """With the interval of ``moderated`` at the level of so many, where it is the wider one."""
    error, df = moderated
    if not (math.isfinite(error) and df > 0):
        return own
    each = arrays.t_quantile(0.5 + CONFIDENCE ** (1 / count) / 2, df) * error
    # the same half-width at the level that an estimate shows
    shown = each / arrays.t_quantile(0.5 + CONFIDENCE / 2, df)
    if own.known and math.log(own.high / own.value) >= each:
        return own
    return replace(own, se_log=shown, df=df)
