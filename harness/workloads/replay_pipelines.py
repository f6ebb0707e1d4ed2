"""Replay's pipelines: no worker, workers on the virtual clock, workers as threads. The model stands in ``replay``."""

from __future__ import annotations

import heapq
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator

from harness.runtime.interfaces import Batch, Clock

ProduceTime = Callable[[int], float]


class InlinePipeline:
    """No worker: a batch is made in the consumer's own time."""

    def __init__(self, produce_s: ProduceTime, clock: Clock, samples: int):
        self._produce_s, self._clock, self._samples = produce_s, clock, samples

    def batches(self) -> Iterator[Batch]:
        number = 0
        while True:
            self._clock.sleep(self._produce_s(number))
            yield Batch(number, self._samples)
            number += 1

    def occupancy(self) -> int | None:
        return None

    def worker_cpus(self) -> list[int] | None:
        return None

    def close(self) -> None:
        return None


class VirtualPipeline:
    """Workers and buffer on the virtual clock: when each batch is ready follows from when earlier ones were taken."""

    def __init__(self, produce_s: ProduceTime, clock: Clock, samples: int, workers: int, prefetch: int):
        self._produce_s, self._clock, self._samples, self._prefetch = produce_s, clock, samples, prefetch
        self._free_at = [clock.now()] * workers
        self._ready_at: deque[float] = deque()
        self._begun = 0
        for _ in range(prefetch):
            self._begin(clock.now())

    def _begin(self, allowed_at: float) -> None:
        """Give the next batch to the worker free first, not before ``allowed_at``."""
        start = max(heapq.heappop(self._free_at), allowed_at)
        ready = start + self._produce_s(self._begun)
        heapq.heappush(self._free_at, ready)
        self._ready_at.append(ready)
        self._begun += 1

    def batches(self) -> Iterator[Batch]:
        number = 0
        while True:
            if not self._ready_at:
                self._begin(self._clock.now())
            self._clock.sleep(max(0.0, self._ready_at.popleft() - self._clock.now()))
            if self._prefetch:
                self._begin(self._clock.now())
            yield Batch(number, self._samples)
            number += 1

    def occupancy(self) -> int | None:
        # half a nanosecond: the clock counts whole ones, sums of floats may differ in the last bit
        now = self._clock.now() + 5e-10
        return sum(ready <= now for ready in self._ready_at)

    def worker_cpus(self) -> list[int] | None:
        return None

    def close(self) -> None:
        self._ready_at.clear()


class ThreadedPipeline:
    """Workers as sleeping threads and a real buffer, by the same rules as :class:`VirtualPipeline`."""

    def __init__(self, produce_s: ProduceTime, clock: Clock, samples: int, workers: int, prefetch: int):
        self._produce_s, self._clock, self._samples = produce_s, clock, samples
        self._on_demand = prefetch == 0
        self._changed = threading.Condition()
        self._allowed, self._begun, self._taken = prefetch, 0, 0
        self._ready: set[int] = set()
        self._worker_cpus: list[int] | None = None
        self._closed = False
        for _ in range(workers):
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        self._worker_cpus = sorted(os.sched_getaffinity(0))  # of this thread
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._begun < self._allowed)
                if self._closed:
                    return
                number, self._begun = self._begun, self._begun + 1
            self._clock.sleep(self._produce_s(number))
            with self._changed:
                self._ready.add(number)
                self._changed.notify_all()

    def batches(self) -> Iterator[Batch]:
        while True:
            with self._changed:
                number, self._taken = self._taken, self._taken + 1
                if self._on_demand:
                    self._allow_one()
                self._changed.wait_for(lambda: number in self._ready)  # noqa: B023
                self._ready.discard(number)
                if not self._on_demand:
                    self._allow_one()
            yield Batch(number, self._samples)

    def _allow_one(self) -> None:
        self._allowed += 1
        self._changed.notify_all()

    def occupancy(self) -> int | None:
        with self._changed:
            return len(self._ready)

    def worker_cpus(self) -> list[int] | None:
        return self._worker_cpus

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
