"""One batch instead of a pipeline: what the lower rungs of the ladder measure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from runtime_support import events, of_kind, run_point, spec_of, step_column, write_point

from harness.runtime.feeds import fed
from harness.runtime.interfaces import Batch, ModelFacts, StepOutcome


class Counted:
    """A pipeline and session that count what they are asked for."""

    def __init__(self) -> None:
        self.made = self.copied = self.closed = 0

    def batches(self) -> Iterator[Batch]:
        while True:
            self.made += 1
            yield Batch(f"batch {self.made}", 8)

    def occupancy(self) -> int | None:
        return 3

    def worker_cpus(self) -> list[int] | None:
        return [0]

    def close(self) -> None:
        self.closed += 1

    def facts(self) -> ModelFacts:
        return ModelFacts("m", 0, 0)

    def to_device(self, batch: Batch) -> Batch:
        self.copied += 1
        return Batch(f"{batch.data} on device", batch.samples)

    def step(self, batch: Batch) -> StepOutcome:
        return StepOutcome(float(len(batch.data)))

    def digest(self) -> str:
        return "d"


@pytest.mark.parametrize(
    ("feed", "made", "copied", "closed"), [("pipeline", 4, 4, 0), ("host", 1, 4, 1), ("device", 1, 1, 1)]
)
def test_what_a_step_still_does(feed: str, made: int, copied: int, closed: int) -> None:
    both = Counted()
    pipeline, session = fed(feed, both, both)
    batches = pipeline.batches()
    data = [session.to_device(next(batches)).data for _ in range(4)]
    assert (both.made, both.copied, both.closed) == (made, copied, closed)
    assert data[0] == "batch 1 on device"
    assert (len(set(data)) == 1) is (feed != "pipeline")
    assert pipeline.occupancy() == (3 if feed == "pipeline" else None)


@pytest.mark.parametrize(("feed", "step_s"), [("pipeline", 0.03), ("host", 0.01), ("device", 0.01)])
def test_a_whole_run_without_its_pipeline(tmp_path: Path, feed: str, step_s: float) -> None:
    options = {"produce_s": 0.02, "consume_s": 0.01}
    done = run_point(write_point(tmp_path, spec_of(feed=feed, steps_warmup=1, steps_timed=5, options=options)))
    assert done.returncode == 0, done.stderr
    records = events(tmp_path)
    ends = step_column(records, "end_s")
    assert [round(b - a, 9) for a, b in zip(ends, ends[1:], strict=False)] == [step_s] * 5
    assert step_column(records, "fresh") == [32] * 6
    assert of_kind(records, "error") == []
