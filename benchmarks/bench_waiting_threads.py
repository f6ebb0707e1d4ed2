"""What threads that wait by spinning take from loader workers on the same cores: OpenMP's wait policy, in torch.

    python benchmarks/bench_waiting_threads.py [--quick] [--json FILE]

torch computes with OpenMP. After its part of a loop a thread of GNU's OpenMP spins for a while before it sleeps
(OMP_WAIT_POLICY, GOMP_SPINCOUNT); a loader worker that wants the core then waits. Two processes train the same ResNet20
on all cores with a worker per core, one with the default policy and one with ``passive``. They take turns in short
blocks of steps, in random order within pairs, one resting while the other runs. Their ratio is that of paired blocks.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from typing import Any

from bench_overhead import CASES, Shared, bare, stream_of
from common import Row, arguments, finish, paired_ratio

STEPS = 2
WARM_STEPS = 8
POLICIES: dict[str, dict[str, str]] = {"default": {}, "passive": {"OMP_WAIT_POLICY": "passive"}}
SPINNING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")


def child(workers: int) -> None:
    """Runs a block of steps for each line on standard input; answers with seconds and CPU seconds per image."""
    from bench_overhead import context_of

    from harness import catalog
    from harness.pipelines.torch_memory import TorchMemory

    cores = len(os.sched_getaffinity(0))
    case = CASES["torch-resnet20"]
    context = context_of(case, threads=cores)
    session = catalog.load(catalog.WORKLOADS[case.workload].frameworks[case.framework])(context)
    pipeline = Shared(TorchMemory(stream_of(case), case.batch, workers=workers, prefetch=1))
    bare(session, pipeline.batches(), WARM_STEPS)
    print("ready", flush=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        bare(session, pipeline.batches(), STEPS)
        print(json.dumps((time.perf_counter() - begin) / STEPS / case.batch), flush=True)
    pipeline.close()


def started(policy: str, workers: int) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name not in SPINNING} | POLICIES[policy]
    command = [sys.executable, __file__, "--child", str(workers)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, bufsize=1
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def block(process: subprocess.Popen[str]) -> float:
    """Seconds per image."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("go\n")
    return float(json.loads(process.stdout.readline()))


def row_of(workers: int, pairs: int) -> Row:
    processes: dict[str, Any] = {policy: started(policy, workers) for policy in POLICIES}
    found: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    for _ in range(pairs):
        for policy in random.sample(sorted(POLICIES), 2):
            found[policy].append(block(processes[policy]))
    for process in processes.values():
        process.communicate()
    rates = {policy: sorted(1 / value for value in values)[pairs // 2] for policy, values in found.items()}
    cores = len(os.sched_getaffinity(0))
    return Row(
        f"OMP_WAIT_POLICY=passive, {cores} threads and {workers} workers on {cores} cores",
        rates["passive"],
        "images/s",
        "default policy",
        rates["default"],
        "passive / default",
        paired_ratio(found["default"], found["passive"]),
        note=f"{pairs} pairs of {STEPS} steps of ResNet20, torch, batch {CASES['torch-resnet20'].batch}",
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--pairs", type=int, help="pairs of blocks of each number of workers")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child)
        return
    cores = len(os.sched_getaffinity(0))
    counts = [1] if options.quick else [1, cores]
    finish([row_of(workers, options.pairs or (3 if options.quick else 40)) for workers in counts], options)


if __name__ == "__main__":
    main()
