"""How long planning takes: a sweep of 10,000 points with an exclude, conditional and derived values.

    python benchmarks/bench_plan.py [points]

The aim is about a second for 10,000 points, file read to tasks in order. Importing is shown apart.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

SWEEP = """\
name: bench
base: {{workload: replay, workers: 2}}
matrix:
  cpu_cores: [1, 2, 4, 8, 16]
  prefetch: [0, 1, 2, 4, 8]
  batch_size: [8, 16, 32, 64]
  seed: [{seeds}]
exclude:
  - where: "cpu_cores == 16 and prefetch > 8"
when:
  - where: {{batch_size: 64}}
    set: {{steps_timed: 50}}
derive:
  parallel_threads: "max(1, cpu_cores // 2)"
repeats: 3
"""
CLUSTER = """\
name: bench
scheduler: local
node: {sockets: 2, cores_per_socket: 8, memory: 64gb}
storage: {hpctmp: {path: /data}}
"""


def main() -> None:
    points = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    begin = time.perf_counter()
    from harness.config.cluster_file import parse_cluster
    from harness.config.sweep_file import parse_sweep
    from harness.plan.plan import plan

    imported = time.perf_counter()
    sweep = parse_sweep(SWEEP.format(seeds=", ".join(str(n) for n in range(points // 100))))
    campaign = plan(sweep, parse_cluster(CLUSTER, Path("/")), now_unix_s=0.0)
    planned = time.perf_counter()
    text = campaign.model_dump_json()
    written = time.perf_counter()
    print(f"import                {imported - begin:6.2f} s")
    print(f"plan {len(campaign.points):6d} points    {planned - imported:6.2f} s, {len(campaign.tasks)} tasks")
    print(f"campaign as JSON      {written - planned:6.2f} s, {len(text) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
