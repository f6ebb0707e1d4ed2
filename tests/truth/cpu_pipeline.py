"""A loader of known CPU cost under one rank's confinement, as a program of its own, to be started as a rank is.

    python cpu_pipeline.py POINT.JSON WORKERS BATCHES SAMPLES COST_S

Each sample costs COST_S seconds of CPU time. Prints what the loader could use: CPUs allowed, CPUs that its workers ran
on, cores used on the mean, and CPU seconds per sample as the harness counts them.
"""

from __future__ import annotations

import json
import multiprocessing as processes
import os
import sys
import time
from pathlib import Path
from typing import Any

from harness.runtime import storage
from harness.runtime.main import begin, read_spec


def burn(seconds: float) -> None:
    """Computes for so much CPU time of its own, however long the process has to wait for a CPU."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def current_cpu() -> int:
    """Field 39 of /proc/self/stat (proc(5)): the CPU last run on."""
    text = Path("/proc/self/stat").read_text()
    return int(text[text.rindex(")") + 2 :].split()[36])


def work(queue: Any, samples: int, cost_s: float) -> None:
    while True:
        seen = set()
        for _ in range(samples):
            burn(cost_s)
            seen.add(current_cpu())
        queue.put(seen)


def main(point: Path, workers: int, batches: int, samples: int, cost_s: float) -> None:
    run = begin(read_spec(point), point.parent)
    run.settle_cpus()
    context = processes.get_context("fork")
    queue = context.Queue(1)
    members = [context.Process(target=work, args=(queue, samples, cost_s), daemon=True) for _ in range(workers)]
    for member in members:
        member.start()
    pids = [member.pid or 0 for member in members]
    seen: set[int] = set()
    for _ in range(workers):
        queue.get()
    begin_s, cpu_s = time.monotonic(), storage.io_counters(pids)["cpu_s"]
    for _ in range(batches):
        seen |= queue.get()
    elapsed_s, used_s = time.monotonic() - begin_s, storage.io_counters(pids)["cpu_s"] - cpu_s
    for member in members:
        member.terminate()
    run.writer.end(ok=True)
    run.close()
    told = {"rank": run.ranks.rank, "allowed": sorted(run.cpus), "seen": sorted(seen), "cores_used": used_s / elapsed_s}
    line = json.dumps(told | {"cpu_s_per_sample": used_s / batches / samples}) + "\n"
    os.write(1, line.encode())  # one write: lines of several ranks must not mix


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
