"""What feeds the training steps other than the pipeline itself: one batch held in host memory or on the device.

The lower rungs of the differential ladder: the pipeline makes one batch and is closed, so that neither its threads nor
its buffer take part in what is measured. Each step counts the batch's images as fresh ones, though none is new.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.runtime.interfaces import Batch, Pipeline, Session, StepOutcome


class HeldBatch:
    """The first batch of ``pipeline`` again and again."""

    def __init__(self, pipeline: Pipeline):
        self._pipeline = pipeline

    def batches(self) -> Iterator[Batch]:
        batch = next(iter(self._pipeline.batches()))
        self._pipeline.close()
        while True:
            yield batch

    def occupancy(self) -> int | None:
        """None: nothing is buffered."""
        return None

    def worker_cpus(self) -> list[int] | None:
        """None: no worker is left."""
        return None

    def close(self) -> None:
        self._pipeline.close()


class OnDevice:
    """``session`` with the batch copied to the device once."""

    def __init__(self, session: Session):
        self._session = session
        self._copied: Batch | None = None

    def to_device(self, batch: Batch) -> Batch:
        """Copies the first batch; the others are taken to be the same one."""
        if self._copied is None:
            self._copied = self._session.to_device(batch)
        return self._copied

    def step(self, batch: Batch) -> StepOutcome:
        return self._session.step(batch)

    def facts(self) -> Any:
        return self._session.facts()

    def digest(self) -> str:
        return self._session.digest()

    def close(self) -> None:
        self._session.close()


def fed(feed: str, pipeline: Pipeline, session: Session) -> tuple[Pipeline, Session]:
    """The pipeline and the session as the steps see them where ``feed`` is pipeline, host or device."""
    if feed == "pipeline":
        return pipeline, session
    return HeldBatch(pipeline), OnDevice(session) if feed == "device" else session
