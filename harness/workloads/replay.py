"""Replay: a scripted producer, a bounded buffer and a consumer, whose results are known beforehand.

The model, in which every time is scripted:

- ``workers`` n ≥ 1 produce batches 0, 1, 2, … in turn; the next batch goes to the worker free first. Batch i takes
  ``produce_s`` (or its place in ``produce_script``), every ``straggler_every``-th one ``straggler_s`` more.
- ``prefetch`` p bounds the batches that are ready or being made: batch i is begun when batch i − p has been taken.
  Unset, p is 2 n. With p = 0 a batch is begun when it is asked for.
- Batches are delivered in order, so one straggler holds back those behind it.
- With n = 0 the consumer makes each batch itself when it needs it.
- A step takes ``consume_s`` (or its place in ``consume_script``), the first one ``first_step_s`` more, during which the
  buffer fills; each step of the last rank takes ``lag_s`` more.

On the virtual clock the times of production are computed by this recurrence and time passes only in waits and
steps; on the real clock threads sleep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness import catalog
from harness.errors import UserError
from harness.model.axes import Axes
from harness.runtime.clock import VirtualClock
from harness.runtime.interfaces import Batch, Clock, ModelFacts, Pipeline, RunContext, StepOutcome
from harness.workloads.replay_pipelines import InlinePipeline, ThreadedPipeline, VirtualPipeline


@dataclass(frozen=True)
class Script:
    """The workload's options, checked."""

    produce: tuple[float, ...]
    consume: tuple[float, ...]
    first_step_s: float
    straggler_every: int
    straggler_s: float
    lag_s: float
    fail_at_step: int

    def produce_s(self, batch: int) -> float:
        """Seconds that one worker needs for this batch."""
        straggles = self.straggler_every and (batch + 1) % self.straggler_every == 0
        return self.produce[batch % len(self.produce)] + (self.straggler_s if straggles else 0.0)

    def consume_s(self, step: int) -> float:
        """Seconds of this step, but for the lag of the last rank."""
        return self.consume[step % len(self.consume)] + (0.0 if step else self.first_step_s)


def script_of(axes: Axes) -> Script:
    """The script that the options tell, defaults from the catalog.

    Raises:
        UserError: for a time that is no number or negative.
    """
    known = catalog.WORKLOADS["replay"].options
    values = {name: axes.options.get(name, option.default) for name, option in known.items()}
    return Script(
        produce=_seconds(values, "produce_script") or _seconds(values, "produce_s"),
        consume=_seconds(values, "consume_script") or _seconds(values, "consume_s"),
        first_step_s=_seconds(values, "first_step_s")[0],
        straggler_every=int(values["straggler_every"]),
        straggler_s=_seconds(values, "straggler_s")[0],
        lag_s=_seconds(values, "lag_s")[0],
        fail_at_step=int(values["fail_at_step"]),
    )


def _seconds(options: Mapping[str, Any], name: str) -> tuple[float, ...]:
    values = options[name] if isinstance(options[name], list | tuple) else [options[name]]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise UserError(f"replay option {name}: {value!r} is no time; write seconds, zero or more, such as 0.01")
    return tuple(float(value) for value in values)


def build_pipeline(context: RunContext) -> Pipeline:
    """The scripted pipeline of this point on the run's clock."""
    axes, produce_s = context.spec.axes, script_of(context.spec.axes).produce_s
    samples = axes.batch_size or catalog.WORKLOADS["replay"].batch_size
    if not axes.workers:
        return InlinePipeline(produce_s, context.clock, samples)
    prefetch = 2 * axes.workers if axes.prefetch is None else axes.prefetch
    kind = VirtualPipeline if isinstance(context.clock, VirtualClock) else ThreadedPipeline
    return kind(produce_s, context.clock, samples, axes.workers, prefetch)


class ReplaySession:
    """A consumer that lets the scripted time pass."""

    def __init__(self, script: Script, clock: Clock, is_last_rank: bool):
        self._script, self._clock, self._is_last_rank = script, clock, is_last_rank
        self._steps = 0

    def facts(self) -> ModelFacts:
        return ModelFacts(name="replay", parameters=0, trainable=0)

    def to_device(self, batch: Batch) -> Batch:
        return batch

    def step(self, batch: Batch) -> StepOutcome:
        """Raises RuntimeError at the step that the script makes fail."""
        step, self._steps = self._steps, self._steps + 1
        if self._is_last_rank and step == self._script.fail_at_step:
            raise RuntimeError(f"scripted failure at step {step}")
        self._clock.sleep(self._script.consume_s(step) + (self._script.lag_s if self._is_last_rank else 0.0))
        return StepOutcome(loss=0.0)

    def digest(self) -> str:
        return "replay"

    def close(self) -> None:
        return None


def build(context: RunContext) -> ReplaySession:
    """The scripted consumer of this rank."""
    is_last = context.ranks.rank == context.ranks.world - 1
    return ReplaySession(script_of(context.spec.axes), context.clock, is_last)
