from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from runtime_support import events, of_kind, spec_of, step_column

from harness.runtime.clock import VirtualClock
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Batch, ModelFacts, StepOutcome
from harness.runtime.stepclock import StepClock, warmup_steps


class ScriptedPipeline:
    def __init__(self, clock: VirtualClock, waits_s: list[float], batch: Batch):
        self.clock, self.waits_s, self.batch = clock, waits_s, batch

    def batches(self) -> Iterator[Batch]:
        for wait_s in self.waits_s:
            self.clock.sleep(wait_s)
            yield self.batch

    def occupancy(self) -> int | None:
        return 3

    def worker_cpus(self) -> list[int] | None:
        return None

    def close(self) -> None:
        return None


class ScriptedSession:
    def __init__(self, clock: VirtualClock, losses: list[float]):
        self.clock, self.losses = clock, iter(losses)

    def facts(self) -> ModelFacts:
        return ModelFacts("scripted", 0, 0)

    def to_device(self, batch: Batch) -> Batch:
        self.clock.sleep(0.002)
        return batch

    def step(self, batch: Batch) -> StepOutcome:
        self.clock.sleep(0.010)
        return StepOutcome(next(self.losses), exchange_s=0.004)

    def digest(self) -> str:
        return ""

    def close(self) -> None:
        return None


def run(
    directory: Path, waits_s: list[float], steps: int, interval: int = 1, batch: Batch | None = None, losses=None
) -> tuple[list[dict], dict[str, int]]:
    clock = VirtualClock()
    writer = EventWriter(directory / "events.r0.jsonl", clock)
    pipeline = ScriptedPipeline(clock, waits_s, batch or Batch(None, 8))
    session = ScriptedSession(clock, losses or [1.0] * steps)
    try:
        StepClock(session, pipeline, clock, writer).run(steps, interval)
    finally:
        writer.end(ok=True)
    records = events(directory)
    return records, {name: records[-1][name] for name in ("steps", "fresh_images", "consumed_images")}


def test_the_parts_of_a_step_add_up_to_it(tmp_path: Path) -> None:
    records, totals = run(tmp_path, [0.1, 0.03], 2)
    assert step_column(records, "begin_s") == [0.0, 0.112]
    assert step_column(records, "wait_s") == [0.1, 0.03]
    assert step_column(records, "copy_s") == [0.002, 0.002]
    assert step_column(records, "compute_s") == [0.006, 0.006]
    assert step_column(records, "exchange_s") == [0.004, 0.004]
    assert step_column(records, "end_s") == [0.112, 0.154]
    assert step_column(records, "occupancy") == [3, 3]
    assert totals == {"steps": 2, "fresh_images": 16, "consumed_images": 16}


def test_a_held_batch_is_neither_waited_for_nor_copied(tmp_path: Path) -> None:
    records, totals = run(tmp_path, [0.1, 0.1], 3, interval=2)
    assert step_column(records, "wait_s") == [0.1, 0.0, 0.1]
    assert step_column(records, "copy_s") == [0.002, 0.0, 0.002]
    assert step_column(records, "fresh") == [8, 0, 8]
    assert totals == {"steps": 3, "fresh_images": 16, "consumed_images": 24}


def test_echoed_images_are_consumed_not_fresh(tmp_path: Path) -> None:
    records, totals = run(tmp_path, [0.0] * 2, 2, batch=Batch(None, samples=3, consumed=8))
    assert step_column(records, "fresh") == [3, 3]
    assert step_column(records, "consumed") == [8, 8]
    assert totals == {"steps": 2, "fresh_images": 6, "consumed_images": 16}


def test_a_pipeline_that_ends_is_an_error_with_the_steps_before_it_kept(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ended before step 2"):
        run(tmp_path, [0.0] * 2, 5)
    assert step_column(events(tmp_path), "step") == [0, 1]


def test_the_first_loss_that_is_no_number_is_a_finding(tmp_path: Path) -> None:
    records, _ = run(tmp_path, [0.0] * 4, 4, losses=[1.0, float("nan"), float("inf"), 1.0])
    [finding] = of_kind(records, "finding")
    assert (finding["code"], finding["evidence"]) == ("loss_not_finite", {"step": 1, "loss": "nan"})


@pytest.mark.parametrize(
    ("axes", "steps"),
    [
        ({}, 5),
        ({"steps_warmup": 0}, 0),
        ({"steps_warmup": 250}, 250),
        ({"prefetch": 8}, 16),
        ({"prefetch": 8, "batch_interval": 4}, 64),
        ({"prefetch": 8, "batch_interval": 128}, 100),
        ({"pipeline": "tf_records_old", "batch_size": 32}, 64),
        ({"pipeline": "tf_records_old", "batch_size": 64}, 100),
        ({"pipeline": "tf_records_old", "batch_size": 64, "prefetch": 4}, 8),
        ({"pipeline": "tf_files"}, 16),
        ({"pipeline": "tf_files", "prefetch": 0}, 5),
        ({"pipeline": "torch_files", "workers": 8}, 32),
        ({"pipeline": "torch_files", "workers": 0, "prefetch": 8}, 5),
        ({"pipeline": "memory", "framework": "tensorflow", "workers": 2, "max_queue_size": 12}, 24),
        ({"pipeline": "memory", "framework": "torch", "workers": 2, "max_queue_size": 12}, 8),
        ({"pipeline": "tf_queue", "batch_size": 256, "options": {"queue_capacity": 2560}}, 20),
    ],
)
def test_warm_up_has_a_floor_and_a_cap(axes: dict[str, Any], steps: int) -> None:
    assert warmup_steps(spec_of(**axes).axes) == steps
