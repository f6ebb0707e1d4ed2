"""Logs → rows of their table. Apart from it, since who only asks other processes for rows need not import numpy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.analysis.foreign.patterns import Pattern
from harness.analysis.foreign.rates import COARSE, Rates, rates_of
from harness.analysis.foreign.segments import Segment, Value, segments
from harness.analysis.foreign.table import NAMES, read
from harness.errors import UserError


def rows_of(logs: Sequence[Path], pattern: Pattern, given: Mapping[str, Value]) -> list[dict[str, Any]]:
    """A row for each measured configuration in the logs, which are measured together.

    Raises:
        UserError: for a log that cannot be read.
    """
    found = [(path, segment) for path in logs for segment in _read(path, pattern, given)]
    measured = rates_of([segment for _, segment in found], pattern)
    return [_row(path, pattern, segment, rates) for (path, segment), rates in zip(found, measured, strict=True)]


def _read(path: Path, pattern: Pattern, given: Mapping[str, Value]) -> list[Segment]:
    try:
        text = read(path)
    except (OSError, EOFError) as error:
        raise UserError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return segments(text, pattern, given)


def _row(path: Path, pattern: Pattern, segment: Segment, found: Rates) -> dict[str, Any]:
    known = found.steady.known
    own = {name: int(v) if isinstance(v, float) and v.is_integer() else v for name, v in segment.configuration.items()}
    return {name: value for name, value in own.items() if name not in NAMES} | {
        "log": str(path),
        "line": segment.line,
        "pattern": pattern.name,
        "steps": found.steps,
        "warmup_steps": found.warmup,
        "left_out_steps": found.left_out,
        "published_images_per_s": found.published,
        "mean_of_step_rates": found.mean_of_steps,
        "elapsed_images_per_s": found.elapsed,
        "images_per_s": found.steady.value,
        "images_per_s_low": found.steady.low if known else math.nan,
        "images_per_s_high": found.steady.high if known else math.nan,
        "overstated": found.overstated,
        "remark": remark(found),
    }


def remark(found: Rates) -> str:
    """``published 2.67 times what the steps sustain; no steady rate: …``."""
    said = []
    if found.parts:
        what = "published" if math.isfinite(found.published) else "mean of step rates"
        against = "is sustained" if math.isfinite(found.steady.value) else "images / elapsed time gives"
        said.append(f"{what} {found.overstated:.3g} times what {against}")
    if found.reason:
        said.append(f"no steady rate: {found.reason}")
    if found.rounding > COARSE:
        said.append(f"printed to ±{found.rounding:.0%} only")
    if found.validated:
        said.append("step times hold the validation")
    return "; ".join(said)
