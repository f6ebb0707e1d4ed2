"""Sums, means, medians and quantiles of short series, without what numpy's and scipy's own cost before they begin.

A run has some hundred steps, and a campaign ten thousand runs: the general functions spend most of their time on
arguments that never occur here. The results are theirs, to the last bit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from harness.analysis.student import stdtr, stdtridf, stdtrit

Floats = NDArray[np.float64]


def total(values: Floats) -> float:
    return float(np.add.reduce(values))


def mean(values: Floats) -> float:
    """NaN for no values."""
    return float(np.add.reduce(values)) / len(values) if len(values) else math.nan


def variance(values: Floats) -> float:
    """Mean square distance from the mean; NaN for no values."""
    distance = values - mean(values)
    return mean(distance * distance)


def median(values: Floats) -> float:
    """NaN for no values, and where one is NaN."""
    return sorted_median(np.sort(values))


def sorted_median(values: Floats) -> float:
    """The median of values that rise."""
    count = len(values)
    if not count or math.isnan(values[-1]):
        return math.nan
    middle = count // 2
    return float(values[middle]) if count % 2 else (float(values[middle - 1]) + float(values[middle])) / 2


def sorted_quantile(values: Floats, share: float) -> float:
    """The value below which this share of at least one value that rise lies, between the two nearest ones."""
    place = (len(values) - 1) * share
    before = int(place)
    low, high = float(values[before]), float(values[min(before + 1, len(values) - 1)])
    part = place - before
    # from the nearer end, as numpy does: both ends are then exact
    return high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part


def t_quantile(share: float, df: float) -> float:
    """Quantile of Student's t; of the normal law for infinite ``df``."""
    return float(stdtrit(df, share))


def t_beyond(value: float, df: float) -> float:
    """How often Student's t lies farther from zero than ``value``, on either side."""
    return 2 * float(stdtr(df, -abs(value)))


def t_freedom(share: float, quantile: float) -> float:
    """Degrees of freedom of the Student's t that has this quantile; infinite from the normal law's own on down."""
    return float(stdtridf(share, quantile)) if quantile > t_quantile(share, math.inf) else math.inf


def autocovariances(centred: Floats, lags: int) -> Floats:
    """Sums of products of a series with mean zero with itself, 0 to ``lags`` places on, shape (lags + 1,)."""
    count = len(centred)
    if count <= _ALL_LAGS_UP_TO:
        products: Floats = np.correlate(centred, centred, "full")[count - 1 : count + lags]
        return products
    return np.array([centred[lag:] @ centred[: count - lag] for lag in range(lags + 1)])


#: Up to so many values, all lags at once cost less than the few that are needed one by one.
_ALL_LAGS_UP_TO = 1000
