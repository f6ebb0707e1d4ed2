"""How long a run goes on where its point asks for an interval instead of a number of steps.

The half-width is that of batch means (Law, Simulation Modeling and Analysis, section 9.5.3): the steps after the first
quarter, which may hold what is left of a transient, in 20 batches of equal length, whose means are nearly independent.
It decides when to stop and nothing else: the interval that is reported is the analysis's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

BATCHES = 20
#: Student's t at 97.5 % with 19 degrees of freedom.
T_QUANTILE = 2.093
#: From one look to the next the steps grow by this factor, so that looking costs nothing.
GROWTH = 1.25
#: Share of the walltime, and least seconds, left for ending the run and the job.
RESERVE_SHARE = 0.05
RESERVE_S = 20.0


def half_width(ends_s: Sequence[float]) -> float:
    """Relative half-width of the 95 % interval of the mean step time, from the ends of consecutive steps.

    Infinite where they are too few to tell.
    """
    last = len(ends_s) - 1
    length = (last - last // 4) // BATCHES
    if length < 1:
        return math.inf
    marks = [ends_s[last - length * (BATCHES - number)] for number in range(BATCHES + 1)]
    means = [(later - earlier) / length for earlier, later in zip(marks, marks[1:], strict=False)]
    mean = sum(means) / BATCHES
    variance = sum((value - mean) ** 2 for value in means) / (BATCHES - 1)
    return T_QUANTILE * math.sqrt(variance / BATCHES) / mean if mean > 0 else 0.0


class RunLength:
    """Decides, at growing numbers of timed steps, whether a run has lasted long enough.

    Args:
        least: timed steps in any case.
        wanted: relative half-width at which the run ends; None: it ends after ``least`` steps.
        until_s: time on the run's clock after which it ends though the interval is wider.
    """

    def __init__(self, least: int, wanted: float | None, until_s: float):
        self._wanted, self._until_s = wanted, until_s
        self._ends_s: list[float] = []
        self._look_at = least
        self.reached = math.nan

    def add(self, end_s: float) -> None:
        """A timed step has ended; steps of the warm-up are not told here."""
        if self._wanted is not None:
            self._ends_s.append(end_s)

    def due(self, timed: int) -> bool:
        """Whether to look now, after ``timed`` steps: the same answer on every rank."""
        return timed >= self._look_at

    def verdict(self) -> str:
        """``enough``, ``late`` or ``more``; the next look comes after a quarter more steps."""
        self._look_at += max(1, math.ceil(self._look_at * (GROWTH - 1)))
        if self._wanted is None:
            return "enough"
        self.reached = half_width(self._ends_s)
        if self.reached <= self._wanted:
            return "enough"
        # the stretch up to the next look must fit, too
        span_s = self._ends_s[-1] - self._ends_s[0] if self._ends_s else 0.0
        return "late" if self._ends_s and self._ends_s[-1] + span_s * (GROWTH - 1) >= self._until_s else "more"


def joint(verdicts: Sequence[str]) -> str:
    """The verdict of all ranks, which must stop at the same step: late where one is late, enough where all are."""
    if "late" in verdicts:
        return "late"
    return "enough" if all(verdict == "enough" for verdict in verdicts) else "more"


def last_moment_s(walltime_s: float, gone_s: float) -> float:
    """Time on the run's clock by which it should end, where ``gone_s`` of the walltime passed before its zero."""
    return walltime_s - gone_s - max(RESERVE_S, RESERVE_SHARE * walltime_s)
