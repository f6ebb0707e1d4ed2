"""Points to job scripts: `harness render` against `jube run` and `reframe --dry-run`, the same matrix on all sides.

    python benchmarks/bench_plan.py [--quick] [--points 10000] [--rounds 4]

What each side does for the product of four axes:

harness   `harness render --mode array`: expands, gives each point an id and a placement, writes campaign.json, a
          directory with point.json for each point, and one script for each array of a thousand points.
          `--mode single` writes a script for each point instead.
JUBE      `jube run` of a step without commands: expands, makes a directory for each point and substitutes the axes into
          the script there; nothing is submitted.
ReFrame   `reframe --dry-run`: expands, makes a stage directory for each point and generates its script there.

Per point, the harness is charged with all of its time, start and waiting for the disk included, divided by the points.
The peers are charged with what the points beyond the first twenty add, at a hundred points: either would take an hour
for ten thousand, and JUBE's cost per point grows with their number. The whole commands at a hundred points are compared
as well. Rounds alternate.

Each command writes to a new directory, and nothing is removed before the end: a file system may look for long where
files were deleted just before (on ext4 without a journal, making a directory then took eight times as long).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from commands import HARNESS, Taken, run
from common import Row, arguments, finish, paired_ratio
from peers import Peer, jube, reframe

AXES = {"cpu_cores": (1, 2, 4, 8, 16), "prefetch": (1, 8), "batch_size": (32, 64)}
#: points of these axes; a fourth makes a multiple of them
BLOCK = 20
PEAK_AIM_MB = 300
GROW_PAIRS = 3
RATIO_AIM = 50
MODES = {"array": "one script for each array", "single": "one script for each point"}

SWEEP = """\
name: bench
base: {{workload: replay, workers: 2}}
matrix:
{axes}
  seed: [{seeds}]
walltime: "00:10:00"
"""
#: more of what a sweep can say; the plain product is what the peers get
RICH = """\
exclude:
  - where: "cpu_cores == 16 and prefetch > 8"
when:
  - where: {batch_size: 64}
    set: {steps_timed: 50}
derive:
  parallel_threads: "max(1, cpu_cores // 2)"
"""
CLUSTER = """\
name: bench
scheduler: slurm
node: {sockets: 2, cores_per_socket: 8, memory: 64gb}
queue: workq
queues: {workq: {max_walltime: "24:00:00"}}
storage: {hpctmp: {path: /data}}
python: /usr/bin/python3
"""
SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=bench
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=#CORES#
#SBATCH --time=00:10:00
#SBATCH --output=job.out
srun python train.py --prefetch #PREFETCH# --batch-size #BATCH# --seed #SEED#
"""
JUBE = """\
name: bench
outpath: {output}
parameterset:
  - name: axes
    parameter:
{axes}
      - {{name: seed, type: int, _: "{seeds}"}}
fileset:
  - name: files
    copy: [job.sh.in]
substituteset:
  - name: values
    iofile:
      - {{in: job.sh.in, out: job.sh}}
    sub:
      - {{source: "#CORES#", dest: $cpu_cores}}
      - {{source: "#PREFETCH#", dest: $prefetch}}
      - {{source: "#BATCH#", dest: $batch_size}}
      - {{source: "#SEED#", dest: $seed}}
step:
  - name: make
    use: [axes, files, values]
"""
REFRAME = """\
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Bench(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "python"
    time_limit = "10m"
{axes}
    seed = parameter([{seeds}])

    @run_after("init")
    def ask(self):
        self.num_cpus_per_task = self.cpu_cores
        self.executable_opts = ["train.py", f"--prefetch {{self.prefetch}}", f"--batch-size {{self.batch_size}}"]

    @sanity_function
    def passed(self):
        return sn.assert_true(True)
"""
REFRAME_SITE = """\
site_configuration = {
    "systems": [
        {
            "name": "bench",
            "hostnames": [".*"],
            "partitions": [
                {"name": "workq", "scheduler": "squeue", "launcher": "srun", "environs": ["plain"], "max_jobs": 8}
            ],
        }
    ],
    "environments": [{"name": "plain"}],
}
"""

Measure = Callable[[Peer, int], Taken]


def seeds(points: int) -> str:
    """Values of the fourth axis for so many points, a multiple of :data:`BLOCK`."""
    return ", ".join(map(str, range(points // BLOCK)))


class Work:
    """A directory in which each command writes to a new one, ``output`` after it."""

    def __init__(self, root: Path):
        self.root = self.output = root
        self._runs = 0
        (root / "cluster.yml").write_text(CLUSTER)
        (root / "job.sh.in").write_text(SCRIPT)
        (root / "site.py").write_text(REFRAME_SITE)

    def harness(self, *words: str, points: int, rich: bool = False) -> Taken:
        axes = "\n".join(f"  {name}: {list(values)}" for name, values in AXES.items())
        sweep = SWEEP.format(axes=axes, seeds=seeds(points)) + (RICH if rich else "")
        (self.root / "sweep.yml").write_text(sweep)
        self._begin()
        place = ["-o", str(self.output)] if words[0] == "render" else []
        return run([HARNESS, *words, "sweep.yml", "--cluster", "cluster.yml", *place], self.root)

    def jube(self, peer: Peer, points: int) -> Taken:
        axes = "\n".join(
            f'      - {{name: {name}, type: int, _: "{", ".join(map(str, values))}"}}' for name, values in AXES.items()
        )
        self._begin()
        (self.root / "bench.yml").write_text(JUBE.format(axes=axes, seeds=seeds(points), output=self.output.name))
        taken = run([str(peer.command), "run", "--hide-animation", "bench.yml"], self.root)
        self._expect(len(list(self.output.glob("*/*_make/work/job.sh"))), points)
        return taken

    def reframe(self, peer: Peer, points: int) -> Taken:
        axes = "\n".join(f"    {name} = parameter({list(values)})" for name, values in AXES.items())
        (self.root / "check.py").write_text(REFRAME.format(axes=axes, seeds=seeds(points)))
        self._begin()
        words = ["--dry-run", "-C", "site.py", "-c", "check.py", "--prefix", str(self.output)]
        taken = run([str(peer.command), *words], self.root)
        self._expect(len(list(self.output.rglob("rfm_job.sh"))), points)
        return taken

    def _begin(self) -> None:
        """A new place, and nothing left to write: to be durable, ours waits for the disk, also for others' files."""
        self._runs += 1
        self.output = self.root / f"out{self._runs}"
        os.sync()

    def clear(self) -> None:
        """Remove what was written: a million files, which Python would take minutes for."""
        subprocess.run(
            ["rm", "-rf", *(str(self.root / f"out{number + 1}") for number in range(self._runs))], check=True
        )

    @staticmethod
    def _expect(found: int, points: int) -> None:
        if found != points:
            raise RuntimeError(f"{found} scripts for {points} points: the peer did not do what is compared")


@dataclass
class Times:
    """Of each side, one of each round: what a point adds, and the whole command at as many points as the peers get."""

    per_point_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    whole_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def compare(work: Work, options: argparse.Namespace) -> list[Row]:
    """Ours at --points against the peers' at fewer, in alternating rounds."""
    points, few, many = options.points, BLOCK, options.peer_points
    peers = [(jube(), work.jube), (reframe(), work.reframe)]
    times = Times()
    for _ in range(options.rounds):
        for mode in MODES:
            taken = work.harness("render", "--mode", mode, points=points)
            times.per_point_ms[mode].append(1e3 * taken.elapsed_s / points)
        times.whole_s["single"].append(work.harness("render", "--mode", "single", points=many).elapsed_s)
        for peer, measure in peers:
            if peer.command:
                less, more = (measure(peer, n).elapsed_s for n in (few, many))
                times.per_point_ms[peer.name].append(1e3 * (more - less) / (many - few))
                times.whole_s[peer.name].append(more)
    return [row for peer, _ in peers for row in compared(peer, times, points, many)]


def compared(peer: Peer, times: Times, points: int, many: int) -> list[Row]:
    """The rows of one peer."""
    if not peer.command:
        return [Row(f"{peer.name} is left out", 0.0, "", note=peer.lacking)]
    rows = []
    for mode, words in MODES.items():
        ours, theirs = times.per_point_ms[mode], times.per_point_ms[peer.name]
        ratio = paired_ratio(theirs, ours)
        aim, met = f"≥ {RATIO_AIM}", ratio.at_least(RATIO_AIM)
        sides = median(ours), "ms", peer.title, median(theirs)
        what = f"Render {points:,} points, {words}, per point"
        rows.append(Row(what, *sides, "theirs / ours", ratio, aim, met, f"{peer.name} at {many} points"))
    ours, theirs = times.whole_s["single"], times.whole_s[peer.name]
    sides = median(ours), "s", peer.title, median(theirs)
    what = f"Render {many} points, one script for each point, whole command"
    return [*rows, Row(what, *sides, "theirs / ours", paired_ratio(theirs, ours))]


def grow(work: Work, options: argparse.Namespace) -> list[Row]:
    """Cost and memory from ten thousand to a hundred thousand points."""
    few, many = options.points, 10 * options.points
    plans = [work.harness("plan", points=few, rich=True) for _ in range(options.rounds)]
    pairs = [
        [work.harness("render", "--mode", "array", points=n) for n in (few, many)]
        for _ in range(min(options.rounds, GROW_PAIRS))
    ]
    small, large = ([pair[side] for pair in pairs] for side in (0, 1))
    per_point = paired_ratio([taken.elapsed_s / many for taken in large], [taken.elapsed_s / few for taken in small])
    peak_mb = max(taken.peak_mb for taken in large)
    plan_ms = 1e3 * median(taken.elapsed_s for taken in plans) / few
    return [
        Row(f"Plan {few:,} points with exclude, when and derive, nothing written, per point", plan_ms, "ms"),
        Row(
            f"Render {many:,} points, arrays, per point",
            1e3 * median(taken.elapsed_s for taken in large) / many,
            "ms",
            f"{few:,} points",
            1e3 * median(taken.elapsed_s for taken in small) / few,
            "more points / fewer",
            per_point,
            "≤ 1.2: linear",
            per_point.at_most(1.2),
        ),
        Row(
            f"Peak memory at {many:,} points",
            peak_mb,
            "MB",
            aim=f"< {PEAK_AIM_MB}" if many >= 100_000 else "",
            met=peak_mb < PEAK_AIM_MB if many >= 100_000 else None,
        ),
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--points", type=int, default=10_000, help="for the harness, a multiple of 20; then ten times")
    parser.add_argument("--peer-points", type=int, default=100, help="for the peers, a multiple of 20")
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    if options.quick:
        options.points, options.peer_points, options.rounds = 500, 40, 1
    with tempfile.TemporaryDirectory(prefix="bench-plan-") as directory:
        work = Work(Path(directory))
        try:
            finish([*compare(work, options), *grow(work, options)], options)
        finally:
            work.clear()


if __name__ == "__main__":
    main()
