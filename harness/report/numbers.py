"""Numbers as people read them: as many digits as their uncertainty deserves."""

from __future__ import annotations

import math

from harness.analysis.stats import Estimate

DASH = "–"
#: Relative width below which an interval is none.
_NO_WIDTH = 1e-9


def number(value: float, digits: int = 4) -> str:
    """``value`` with ``digits`` significant digits, no exponent between 0.001 and 10 million."""
    if not math.isfinite(value):
        return DASH
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    return f"{value:.{decimals}f}"


def _decimals(low: float, high: float) -> int:
    """Decimals at which the interval's half-width is at least 2 units of the last digit, and its low end not 0.

    Below 0 where tens or thousands are noise; three digits of the low end stay.
    """
    wanted = max(math.ceil(math.log10(4 / (high - low))), math.ceil(-math.log10(low)))
    return min(max(wanted, min(2 - math.floor(math.log10(low)), 0)), 6)


def digits(value: float, low: float, high: float) -> str:
    """``value`` to the digits that its interval deserves; the interval must have a width."""
    return _rounded(value, _decimals(low, high))


def bracketed(value: float, low: float, high: float) -> str:
    """``1.71 [1.62, 1.80]``, ``850000 [804000, 900000]``; the value alone where the interval has no width."""
    if high - low <= _NO_WIDTH * abs(value):
        return number(value)
    decimals = _decimals(low, high)
    return f"{_rounded(value, decimals)} [{_rounded(low, decimals)}, {_rounded(high, decimals)}]"


def _rounded(value: float, decimals: int) -> str:
    return f"{round(value, decimals):.{max(decimals, 0)}f}"


def exact(estimate: Estimate) -> bool:
    """An interval without width: scripted clocks, and anything against itself."""
    return estimate.known and estimate.high - estimate.low <= _NO_WIDTH * abs(estimate.value)


def value(estimate: Estimate) -> str:
    """The value alone, to the digits that its interval deserves."""
    if estimate.value == 1.0 and exact(estimate):
        return "1"
    if not estimate.known or exact(estimate):
        return number(estimate.value)
    return digits(estimate.value, estimate.low, estimate.high)


def with_interval(estimate: Estimate) -> str:
    """``1.71 [1.62, 1.80]``; the value alone where no interval is known or it has no width."""
    if not estimate.known or exact(estimate):
        return value(estimate)
    return bracketed(estimate.value, estimate.low, estimate.high)


def percent(estimate: Estimate) -> str:
    """``70% [61, 80]``: whole per cent at least; ``70%`` where no interval is known or it has no width."""
    if not math.isfinite(estimate.value):
        return DASH
    if not estimate.known or exact(estimate):
        return f"{estimate.value:.0%}"
    return percents(estimate.value, estimate.low, estimate.high)


def percents(value: float, low: float, high: float) -> str:
    """``70% [61, 80]``; the value alone where the interval has no width."""
    if high - low <= _NO_WIDTH * abs(value):
        return f"{value:.0%}"
    decimals = max(_decimals(100 * low, 100 * high), 0)
    shown = [f"{100 * number:.{decimals}f}" for number in (value, low, high)]
    return f"{shown[0]}% [{shown[1]}, {shown[2]}]"


def duration(seconds: float) -> str:
    """``12.3 s``, ``4 min 10 s``, ``3 h 05 min``."""
    if not math.isfinite(seconds):
        return DASH
    if seconds < 100:
        return f"{number(seconds, 3)} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"
