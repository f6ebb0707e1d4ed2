"""The training loop with a clock on every step.

A step begins when the batch is asked for and ends when the session says that the device has finished. With
``batch_interval`` k a fetched batch is used for k consecutive steps: only the first of them waits, copies and
delivers fresh images. What the loop itself costs lies between one step's end and the next step's begin, so it is
part of any elapsed time and can be read off the events.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.model.axes import Axes
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Batch, Clock, Pipeline, Session

WARMUP_FLOOR = 5
WARMUP_CAP = 100


def warmup_steps(axes: Axes) -> int:
    """Steps run before the timed ones.

    Unset means auto: at least :data:`WARMUP_FLOOR` steps for compilation and autotuning, and twice the buffer's
    depth in steps, since a buffer that filled during the first step drains before the rate is steady; never more
    than :data:`WARMUP_CAP`. It is a floor: where the steady state begins, the analysis finds from the raw steps.
    """
    if axes.steps_warmup is not None:
        return axes.steps_warmup
    depth = 2 * (axes.prefetch or 0) * axes.batch_interval
    return max(WARMUP_FLOOR, min(WARMUP_CAP, depth))


class StepClock:
    """Runs steps and records each one's parts."""

    def __init__(self, session: Session, pipeline: Pipeline, clock: Clock, writer: EventWriter):
        self._session, self._pipeline = session, pipeline
        self._clock, self._writer = clock, writer
        self._loss_is_finite = True

    def run(self, steps: int, batch_interval: int) -> None:
        """``steps`` training steps, each fetched batch used ``batch_interval`` times.

        Raises:
            RuntimeError: when the pipeline, which must be endless, ends.
        """
        batches = self._pipeline.batches()
        batch: Batch | None = None
        for number in range(steps):
            if number % batch_interval == 0:
                batch = None
            batch = self._step(number, batches, batch)
        self._writer.flush()

    def _step(self, number: int, batches: Iterator[Batch], held: Batch | None) -> Batch:
        """One step with the ``held`` batch, already on the device, or with a newly fetched one."""
        now = self._clock.now
        occupancy = self._pipeline.occupancy()
        begin = fetched = copied = now()
        batch = held
        if batch is None:
            host = next(batches, None)
            fetched = now()
            if host is None:
                raise RuntimeError(f"the input pipeline ended before step {number}; pipelines must be endless")
            batch = self._session.to_device(host)
            copied = now()
        outcome = self._session.step(batch)
        end = now()
        fresh = batch.samples if held is None else 0
        consumed = batch.samples if batch.consumed is None else batch.consumed
        compute_s = end - copied - outcome.exchange_s
        origin = self._writer.origin_s
        row = (begin - origin, end - origin, fetched - begin, copied - fetched, compute_s, outcome.exchange_s)
        self._writer.step(number, (*row, fresh, consumed, occupancy), outcome.loss)
        self._watch_loss(number, outcome.loss)
        return batch

    def _watch_loss(self, number: int, loss: float) -> None:
        """A finding at the first loss that is NaN or infinite: such arithmetic may run at another speed."""
        if self._loss_is_finite and not math.isfinite(loss):
            self._loss_is_finite = False
            advice = "lower the learning rate or the precision's range; the model no longer trains"
            self._writer.finding("loss_not_finite", {"step": number, "loss": str(loss)}, advice)
