"""Rates of a segment: what the program published, and images / elapsed time computed anew from its steps. Pure.

Where a log gives rates r of steps with equal batches, images / elapsed time is their harmonic mean: a step of B images
took B / r. Their arithmetic mean, which many programs print, is never smaller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.analysis import arrays, stats, steady
from harness.analysis.foreign.patterns import Pattern
from harness.analysis.foreign.segments import Segment
from harness.analysis.foreign.steps import Steps
from harness.analysis.stats import UNKNOWN, Estimate, Floats
from harness.analysis.windows import Windows, alike

#: Published and computed rates that differ by more than this share part.
PARTS_AT = 0.03
#: Numbers printed more coarsely than this are said to be.
COARSE = 0.01


@dataclass(frozen=True)
class Rates:
    """images/s by several definitions, NaN or unknown where the log does not tell.

    ``published``: as the program printed it. ``mean_of_steps``: arithmetic mean of the steps' rates after the warm-up.
    ``elapsed``: images / elapsed time over the same steps. ``steady``: the same over the steady window. ``rounding``:
    half a unit of the last digit printed, against the median. ``validated``: the times hold the validation as well.
    """

    published: float
    mean_of_steps: float
    elapsed: float
    steady: Estimate
    steps: int
    warmup: int
    left_out: int
    reason: str
    rounding: float = 0.0
    validated: bool = False

    @property
    def honest(self) -> float:
        """The steady rate where there is one, otherwise images / elapsed time."""
        return self.steady.value if math.isfinite(self.steady.value) else self.elapsed

    @property
    def overstated(self) -> float:
        """Published rate (or the mean of step rates, where none was printed) / honest rate."""
        said = self.published if math.isfinite(self.published) else self.mean_of_steps
        return said / self.honest if self.honest > 0 else math.nan

    @property
    def parts(self) -> bool:
        return math.isfinite(self.overstated) and abs(self.overstated - 1) > PARTS_AT


def rates(segment: Segment, pattern: Pattern) -> Rates:
    """The rates of a segment; ``reason`` says why there is no steady one."""
    return rates_of([segment], pattern)[0]


def rates_of(segments: Sequence[Segment], pattern: Pattern) -> list[Rates]:
    """As :func:`rates` for many segments."""
    found = [_without_steps(segment, pattern) for segment in segments]
    steps = [_steps(segment, pattern) for segment in segments]
    for number, (_, _, lack) in enumerate(steps):
        if lack:
            found[number] = replace(found[number], reason=lack)
    for numbers in alike(len(seconds) for _, seconds, _ in steps):
        windows = _steady([steps[number] for number in numbers])
        for number, (window, rate) in zip(numbers, windows, strict=True):
            found[number] = _with_steps(found[number], segments[number], *steps[number][:2], window, rate)
    return found


def _steady(steps: Sequence[tuple[Floats, Floats, str]]) -> list[tuple[steady.SteadyWindow, Estimate]]:
    """The steady window of each, and its rate."""
    images = Windows.aligned([images for images, *_ in steps])
    seconds = images.of(Windows.aligned([seconds for _, seconds, _ in steps]).values)
    even = Windows.aligned([seconds / images * arrays.mean(images) for images, seconds, _ in steps])
    unknown = np.full(even.values.shape, math.nan)
    windows = steady.find_all(even, unknown, [0] * len(steps), [1.0] * len(steps))
    begin = images.begin + np.array([window.begin for window in windows])
    rates = stats.within_runs(images.since(begin), seconds.since(begin))
    return [(window, rate if window.steady else UNKNOWN) for window, rate in zip(windows, rates, strict=True)]


def _without_steps(segment: Segment, pattern: Pattern) -> Rates:
    published, why = _summary_rate(segment, pattern), "the log has no line for each step"
    return Rates(published, math.nan, math.nan, UNKNOWN, len(segment.steps), 0, 0, why)


def _with_steps(
    found: Rates, segment: Segment, images: Floats, seconds: Floats, window: steady.SteadyWindow, rate: Estimate
) -> Rates:
    after = slice(window.warmup, None)
    return Rates(
        published=found.published,
        mean_of_steps=arrays.mean(images[after] / seconds[after]),
        elapsed=stats.rate(images[after], seconds[after]),
        steady=rate,
        steps=len(seconds),
        warmup=window.warmup,
        left_out=window.begin,
        reason=window.reason,
        rounding=_rounding(segment.steps),
        validated=segment.steps.says("val_loss"),
    )


def _rounding(steps: Steps) -> float:
    """Half of the last digit printed against the median: 0.03 for about 15 ms, 0 where seven digits are printed."""
    name = next((n for n in ("images_per_s", "step_s", "epoch_s") if n in steps.row(0)), "")
    each = steps.floats(name)
    each = each[each > 0]
    values = each.tolist()
    for digits in range(7 if values else 0):
        # one value that is surely no number of so many digits spares looking at all
        if abs(round(values[0], digits) - values[0]) > 1e-8 * max(values[0], 1.0):
            continue
        # what numpy's rounding, which is quick and less exact, does not show, Python's may
        if np.all(np.abs(np.round(each, digits) - each) < 1e-9) or all(
            abs(round(value, digits) - value) < 1e-9 for value in values
        ):
            return 0.5 * 10.0**-digits / arrays.median(each)
    return 0.0


def _fact(segment: Segment, name: str) -> float:
    value = segment.configuration.get(name)
    return value if isinstance(value, float) else math.nan


def _batch(segment: Segment, pattern: Pattern) -> float:
    """Images of one step over all ranks."""
    ranks = _fact(segment, "ranks")
    return _fact(segment, "batch_size") * (ranks if pattern.batch_per_rank and ranks > 0 else 1.0)


def _summary_rate(segment: Segment, pattern: Pattern) -> float:
    if "images_per_s" in segment.summary:
        return segment.summary["images_per_s"]
    if "epoch_s" in segment.summary:
        return _fact(segment, "images") / segment.summary["epoch_s"]
    return _batch(segment, pattern) / segment.summary.get("step_s", math.nan)


def _steps(segment: Segment, pattern: Pattern) -> tuple[Floats, Floats, str]:
    """Images and seconds of each step line, shape (steps,), or empty with what is lacking."""
    empty = np.zeros(0)
    if pattern.per_rank and len(segment.steps) and not _ranks(segment, pattern) > 0:
        return empty, empty, "the number of ranks is not in the log: give --fact ranks=N"
    if pattern.running_mean:
        return *_differences(segment, pattern), ""
    batch, ranks, epoch_images = _batch(segment, pattern), _ranks(segment, pattern), _fact(segment, "images")
    rate = segment.steps.floats("images_per_s") * ranks
    images = np.full(len(rate), batch if batch > 0 else 1.0)
    seconds = np.divide(images, rate, out=np.full(len(rate), math.inf), where=rate > 0)
    for place in _without(segment.steps, "images_per_s"):
        images[place], seconds[place], lack = _step(segment.steps.row(place), batch, epoch_images)
        if lack:
            return empty, empty, lack
    good = (seconds > 0) & (seconds < math.inf)
    return images[good], seconds[good], ""


def _without(steps: Steps, name: str) -> list[int]:
    """Places of the step lines that do not have this number."""
    column = steps.columns.get(name)
    if column is None:
        return list(range(len(steps)))
    return [place for place, value in enumerate(column) if value is None] if None in column else []


def _step(step: dict[str, float], batch: float, epoch_images: float) -> tuple[float, float, str]:
    """(images, seconds, what is lacking) of a step line that has a time and no rate."""
    if "epoch_s" in step and ("step_s" not in step or epoch_images > 0):
        images = step.get("images", epoch_images)
        if not images > 0:
            return 0.0, 0.0, "the images of an epoch are not in the log: give --fact images=N"
        return images, step["epoch_s"], ""
    if not batch > 0:
        return 0.0, 0.0, "the batch size is not in the log: give --fact batch_size=N"
    steps = step.get("steps", 1.0)
    return steps * batch, steps * step["step_s"], ""


def _ranks(segment: Segment, pattern: Pattern) -> float:
    """By how much the rates of step lines are multiplied; NaN where the log does not tell.

    Where the total beside a running mean is that of all ranks, their ratio tells how many there are: the divisor of
    the number of devices (global batch / batch of a device) nearest to it.
    """
    if not pattern.per_rank:
        return 1.0
    given, per_device = _fact(segment, "ranks"), _fact(segment, "batch_per_device")
    devices = _fact(segment, "batch_size") / per_device if per_device > 0 else math.nan
    if given > 0 or not devices >= 1:
        return given
    total = segment.summary.get("images_per_s", math.nan) if pattern.running_mean else math.nan
    seen = total / segment.steps.row(-1).get("images_per_s", math.nan)
    if not 0 < seen < math.inf:
        return 1.0 if devices == 1 else math.nan
    divisors = [n for n in range(1, round(devices) + 1) if round(devices) % n == 0]
    return float(min(divisors, key=lambda n: abs(math.log(n / seen))))


def _differences(segment: Segment, pattern: Pattern) -> tuple[Floats, Floats]:
    """Steps between the lines of a running mean m(n) = images / elapsed time: elapsed is n · batch / m(n).

    Where several ranks wrote a line for the same step, the slowest of them counts.
    """
    batch, ranks = _batch(segment, pattern), _ranks(segment, pattern)
    batch = batch if batch > 0 else 1.0
    slowest: dict[float, float] = {}
    columns = segment.steps.columns
    for number, rate in zip(columns.get("step", ()), columns.get("images_per_s", ()), strict=False):
        if number is not None and rate is not None and rate > 0:
            slowest[number] = min(rate, slowest.get(number, math.inf))
    if not slowest:
        return np.zeros(0), np.zeros(0)
    numbers = np.asarray(sorted(slowest))
    mean = ranks * np.asarray([slowest[number] for number in numbers])
    images, elapsed_s = numbers * batch, numbers * batch / mean
    seconds, counts = np.diff(elapsed_s, prepend=0.0), np.diff(images, prepend=0.0)
    good = (seconds > 0) & (counts > 0)
    return counts[good], seconds[good]
