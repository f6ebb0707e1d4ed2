"""The training loop with a clock on every step.

A step begins when the batch is asked for and ends when the session says that the device has finished. With
``batch_interval`` k a fetched batch is used for k consecutive steps: only the first of them waits, copies and
delivers fresh images. What the loop itself costs lies between one step's end and the next step's begin, so it is
part of any elapsed time and can be read off the events.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from harness import catalog
from harness.model.axes import Axes
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Batch, Clock, Pipeline, Session
from harness.runtime.run_length import RunLength

WARMUP_FLOOR = 5
WARMUP_CAP = 100


def warmup_steps(axes: Axes) -> int:
    """Steps run before the timed ones.

    Unset means auto: at least :data:`WARMUP_FLOOR` steps for compilation and autotuning, and twice the buffer's
    depth in steps, be it the axis's or the pipeline's own, since a buffer that filled during the first step drains
    before the rate is steady; never more than :data:`WARMUP_CAP`. It is a floor: where the steady state
    begins, the analysis finds from the raw steps.
    """
    if axes.steps_warmup is not None:
        return axes.steps_warmup
    pipeline = catalog.PIPELINES.get(axes.pipeline or "")
    depth = pipeline.depth(axes) if pipeline else axes.prefetch or 0
    return max(WARMUP_FLOOR, min(WARMUP_CAP, 2 * depth * axes.batch_interval))


class Between(NamedTuple):
    """What is done after ``every`` so many steps; ``act`` takes the number of steps done."""

    every: int
    act: Callable[[int], None]


class StepClock:
    """Runs steps and records each one's parts."""

    def __init__(self, session: Session, pipeline: Pipeline, clock: Clock, writer: EventWriter):
        self._session, self._pipeline = session, pipeline
        self._clock, self._writer = clock, writer
        self._loss_is_finite = True
        self._paused_s = 0.0
        self._batches: Iterator[Batch] | None = None

    def run(self, steps: int, batch_interval: int) -> None:
        """``steps`` training steps, each fetched batch used ``batch_interval`` times.

        Raises:
            RuntimeError: when the pipeline, which must be endless, ends.
        """
        self.run_until(0, RunLength(steps, None, math.inf), batch_interval, lambda verdict: verdict)

    def run_until(
        self,
        warmup: int,
        length: RunLength,
        batch_interval: int,
        agree: Callable[[str], str],
        between: Between | None = None,
    ) -> str:
        """``warmup`` steps, then as many as ``length`` says; returns its last verdict, ``enough`` or ``late``.

        ``agree`` turns this rank's verdict into that of all ranks, for they stop at the same step. It is called
        between two steps, a few times in a run. ``between`` is done while the steps' clock stands still.
        """
        batch: Batch | None = None
        number, verdict = 0, "more"
        while verdict == "more":
            if number % batch_interval == 0:
                batch = None
            batch = self._step(number, batch)
            number += 1
            if between is not None and number % between.every == 0:
                self._pause(lambda: between.act(number))  # noqa: B023
            if number > warmup:
                length.add(self._writer.now())
            if number >= warmup and length.due(number - warmup):
                verdict = agree(length.verdict())
        self._writer.flush()
        return verdict

    def _pause(self, act: Callable[[], None]) -> None:
        begin = self._clock.now()
        act()
        self._paused_s += self._clock.now() - begin

    def run_unrecorded(self, steps: int) -> None:
        """Further steps that leave no record, for a profiler to watch."""
        for _ in range(steps):
            self._session.step(self._session.to_device(self._fetch(-1)))

    def _fetch(self, number: int) -> Batch:
        if self._batches is None:
            self._batches = self._pipeline.batches()
        host = next(self._batches, None)
        if host is None:
            raise RuntimeError(f"the input pipeline ended before step {number}; pipelines must be endless")
        return host

    def _step(self, number: int, held: Batch | None) -> Batch:
        """One step with the ``held`` batch, already on the device, or with a newly fetched one."""
        now = self._clock.now
        occupancy = self._pipeline.occupancy()
        begin = fetched = copied = now()
        batch = held
        if batch is None:
            host = self._fetch(number)
            fetched = now()
            batch = self._session.to_device(host)
            copied = now()
        outcome = self._session.step(batch)
        end = now()
        fresh = batch.samples if held is None else 0
        consumed = batch.samples if batch.consumed is None else batch.consumed
        compute_s = end - copied - outcome.exchange_s
        origin = self._writer.origin_s + self._paused_s
        times = (begin - origin, end - origin, fetched - begin, copied - fetched, compute_s, outcome.exchange_s)
        self._writer.step(number, (*times, fresh, consumed, occupancy), outcome.loss)
        self._watch_loss(number, outcome.loss)
        return batch

    def _watch_loss(self, number: int, loss: float) -> None:
        """A finding at the first loss that is NaN or infinite: such arithmetic may run at another speed."""
        if self._loss_is_finite and not math.isfinite(loss):
            self._loss_is_finite = False
            advice = "lower the learning rate or the precision's range; the model no longer trains"
            self._writer.finding("loss_not_finite", {"step": number, "loss": str(loss)}, advice)
