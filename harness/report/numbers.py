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
    """Decimals that show two digits of the interval's half-width."""
    half = (estimate.high - estimate.low) / 2
    if half <= 0:
        half = abs(estimate.value) / 1000 or 1.0
    return min(max(1 - math.floor(math.log10(half)), 0), 6)


def value(estimate: Estimate) -> str:
    """The value alone."""
    if not math.isfinite(estimate.value):
        return DASH
    return f"{estimate.value:.{_decimals(estimate)}f}" if estimate.known else number(estimate.value)


def interval(estimate: Estimate) -> str:
    """``[low, high]``, or a dash where there is none."""
    if not estimate.known:
        return DASH
    decimals = _decimals(estimate)
    return f"[{estimate.low:.{decimals}f}, {estimate.high:.{decimals}f}]"


def with_interval(estimate: Estimate) -> str:
    """``1.71 [1.62, 1.80]``."""
    return f"{value(estimate)} {interval(estimate)}" if estimate.known else value(estimate)


def duration(seconds: float) -> str:
    """``12.3 s``, ``4 min 10 s``, ``3 h 05 min``."""
    if not math.isfinite(seconds):
        return DASH
    if seconds < 100:
        return f"{number(seconds, 3)} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"
