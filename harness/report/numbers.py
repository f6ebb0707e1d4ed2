"""Numbers as people read them: as many digits as their uncertainty deserves."""

from __future__ import annotations

import math

from harness.analysis.stats import Estimate

DASH = "–"


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


def _decimals(estimate: Estimate) -> int:
    """Decimals at which the interval's half-width is at least 2 units of the last digit, and its low end not 0."""
    half = (estimate.high - estimate.low) / 2
    wanted = max(math.ceil(math.log10(2 / half)), math.ceil(-math.log10(estimate.low)))
    return min(max(wanted, 0), 6)


def exact(estimate: Estimate) -> bool:
    """An interval without width: scripted clocks, and anything against itself."""
    return estimate.known and estimate.high - estimate.low <= 1e-9 * abs(estimate.value)


def value(estimate: Estimate) -> str:
    """The value alone, to the digits that its interval deserves."""
    if estimate.value == 1.0 and exact(estimate):
        return "1"
    if not estimate.known or exact(estimate):
        return number(estimate.value)
    return f"{estimate.value:.{_decimals(estimate)}f}"


def with_interval(estimate: Estimate) -> str:
    """``1.71 [1.62, 1.80]``; the value alone where no interval is known or it has no width."""
    if not estimate.known or exact(estimate):
        return value(estimate)
    decimals = _decimals(estimate)
    return f"{value(estimate)} [{estimate.low:.{decimals}f}, {estimate.high:.{decimals}f}]"


def duration(seconds: float) -> str:
    """``12.3 s``, ``4 min 10 s``, ``3 h 05 min``."""
    if not math.isfinite(seconds):
        return DASH
    if seconds < 100:
        return f"{number(seconds, 3)} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"
