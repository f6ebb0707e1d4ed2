"""A loader of known CPU cost under one rank's confinement, as a program of its own, to be started as a rank is.

    python cpu_pipeline.py POINT.JSON WORKERS BATCHES SAMPLES COST_S

Each sample costs COST_S seconds of CPU time; steps take no time, so that the loader alone sets the pace. The steps are
recorded as a run's are. Prints what the loader could use: CPUs allowed to the rank and to each worker, CPUs that the
workers ran on, cores used on the mean, cores that others used of those allowed or a limit kept from all, and CPU
seconds per sample as the harness counts them.
"""

from __future__ import annotations

import json
import multiprocessing as processes
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.runtime import storage
from harness.runtime.interfaces import Batch, ModelFacts, StepOutcome
from harness.runtime.main import begin, read_spec
from harness.runtime.stepclock import StepClock


def burn(seconds: float) -> None:
    """Computes for so much CPU time of its own, however long the process has to wait for a CPU."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def current_cpu() -> int:
    """Field 39 of /proc/self/stat (proc(5)): the CPU last run on."""
    text = Path("/proc/self/stat").read_text()
    return int(text[text.rindex(")") + 2 :].split()[36])


def busy_s(cpus: Sequence[int]) -> float:
    """Seconds that the CPUs have worked for anybody, or were taken away: all of /proc/stat but idle and iowait."""
    total = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name[:3] == "cpu" and name[3:].isdigit() and int(name[3:]) in cpus:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[:8])
            total += user + nice + system + irq + softirq + steal
    return total / os.sysconf("SC_CLK_TCK")


def throttled_s() -> float:
    """CPU seconds that a limit of this control group has kept from it (cgroup v2); 0 where there is none."""
    try:
        lines = Path("/sys/fs/cgroup/cpu.stat").read_text().splitlines()
    except OSError:
        return 0.0
    return int(dict(line.split() for line in lines).get("throttled_usec", 0)) / 1e6


def work(queue: Any, samples: int, cost_s: float) -> None:
    while True:
        seen = set()
        for _ in range(samples):
            burn(cost_s)
            seen.add(current_cpu())
        queue.put(seen)


class Loader:
    """Worker processes that never rest, and the queue between them and the training thread."""

    def __init__(self, workers: int, samples: int, cost_s: float):
        context = processes.get_context("fork")
        self._queue, self._samples = context.Queue(1), samples
        self._members = [context.Process(target=work, args=(self._queue, samples, cost_s)) for _ in range(workers)]
        for member in self._members:
            member.daemon = True
            member.start()
        self.pids = [member.pid or 0 for member in self._members]
        self.seen: set[int] = set()
        for _ in range(workers):
            self._queue.get()

    def batches(self) -> Iterator[Batch]:
        while True:
            self.seen |= self._queue.get()
            yield Batch(None, self._samples)

    def occupancy(self) -> int | None:
        return None

    def worker_cpus(self) -> list[int] | None:
        return sorted(os.sched_getaffinity(self.pids[0]))

    def close(self) -> None:
        for member in self._members:
            member.terminate()


class Nothing:
    """A step that takes no time."""

    def facts(self) -> ModelFacts:
        return ModelFacts("nothing", 0, 0)

    def to_device(self, batch: Batch) -> Batch:
        return batch

    def step(self, batch: Batch) -> StepOutcome:
        return StepOutcome(0.0)

    def digest(self) -> str:
        return ""

    def close(self) -> None:
        return None


def main(point: Path, workers: int, batches: int, samples: int, cost_s: float) -> None:
    run = begin(read_spec(point), point.parent)
    run.settle_cpus()
    loader = Loader(workers, samples, cost_s)
    steps = StepClock(Nothing(), loader, run.clock, run.writer)
    # the time around the counters, not within: what loaders use must not seem more because this process had to wait
    begin_s, kept_s = time.monotonic(), throttled_s()
    cpu_s, all_s = storage.io_counters(loader.pids)["cpu_s"], busy_s(run.cpus)
    steps.run(batches, 1)
    used_s, all_s = storage.io_counters(loader.pids)["cpu_s"] - cpu_s, busy_s(run.cpus) - all_s
    elapsed_s, kept_s = time.monotonic() - begin_s, throttled_s() - kept_s
    told: dict[str, Any] = {"rank": run.ranks.rank, "allowed": sorted(run.cpus), "seen": sorted(loader.seen)}
    told |= {"node": run.ranks.node, "workers_allowed": [sorted(os.sched_getaffinity(pid)) for pid in loader.pids]}
    told |= {"worker_allowed": loader.worker_cpus(), "cores_used": used_s / elapsed_s}
    told |= {"cores_of_others": (all_s - used_s) / elapsed_s, "cores_throttled": kept_s / elapsed_s}
    told |= {"cpu_s_per_sample": used_s / batches / samples}
    loader.close()
    run.writer.end(ok=True)
    run.close()
    os.write(1, (json.dumps(told) + "\n").encode())  # one write: lines of several ranks must not mix


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
