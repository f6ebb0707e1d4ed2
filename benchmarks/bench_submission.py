"""Single jobs, arrays and packs on a real private Slurm: calls to the scheduler, and how long a hundred points take.

    python benchmarks/bench_submission.py [--quick]

Calls are counted by wrappers before Slurm's commands on PATH. For the thousand points the partition is down, so that
submitting is all that happens. For the makespan, from the call of `harness run` to the end of the last job by its exit
record, the jobs' launcher is a stub that leaves a rank's events and no more: what remains is the harness, Slurm and the
job scripts. The harness keeps to its own manners: five submissions a second, status asked ever more rarely. The virtual
nodes share this machine's cores.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from commands import HARNESS, ROOT
from common import Row, arguments, finish, paired_ratio

sys.path.insert(0, str(ROOT / "tests"))

from sites.clusters import cluster, write_project
from sites.slurm.site import PrivateSlurm, lacking, private_slurm

MODES = ("single", "array", "pack")
COMMANDS = ("sbatch", "squeue", "sacct", "scontrol", "sinfo", "scancel")
#: its last word is the path of point.json, beside which it leaves what a rank would
STUB = """#!/bin/bash
printf '{"event":"run_start"}\\n{"event":"run_end","ok":true}\\n' >"${@: -1}.tmp"
mv "${@: -1}.tmp" "$(dirname "${@: -1}")/events.r0.jsonl"
"""
WRAPPER = """#!/bin/sh
echo {name} >>'{log}'
exec '{command}' "$@"
"""


@dataclass(frozen=True)
class Done:
    """A mode's calls by command, seconds until the harness was back, and until the last job had ended."""

    calls: Counter[str]
    returned_s: float
    makespan_s: float = 0.0


class Work:
    def __init__(self, root: Path, site: PrivateSlurm):
        self.root, self.site, self.log = root, site, root / "calls"
        self.tools = root / "bin"
        self.tools.mkdir()
        path = site.environment["PATH"]
        for name in COMMANDS:
            if command := shutil.which(name, path=path):
                self._script(self.tools / name, WRAPPER.format(name=name, log=self.log, command=command))
        self._script(root / "mpirun", STUB)
        self.environment = {**site.environment, "PATH": f"{self.tools}{os.pathsep}{path}"}

    def run(self, verb: str, mode: str, points: int, number: int, *more: str) -> Done:
        """A new campaign of so many points."""
        project = self.root / f"{verb}-{mode}-{number}"
        description = cluster(
            "private", "slurm", self.root, nodes=4, mpi={"bind": "none", "command": str(self.root / "mpirun")}
        )
        sweep = {
            "name": "short",
            "base": {"workload": "replay"},
            "matrix": {"workers": list(range(points // 20)), "prefetch": list(range(20))},
            "steps": {"warmup": 0, "timed": 2},
            "walltime": "00:01:00",
            "memory": "100mb",
        }
        sweep_file, cluster_file = write_project(project, description, sweep)
        self.log.write_text("")
        argv = [
            HARNESS,
            verb,
            str(sweep_file),
            "--cluster",
            str(cluster_file),
            "--campaign",
            "c",
            "--mode",
            mode,
            *more,
        ]
        begin, began_unix_s = time.perf_counter(), time.time()
        done = subprocess.run(argv, cwd=project, env=self.environment, capture_output=True, text=True, check=False)
        returned_s = time.perf_counter() - begin
        if done.returncode:
            raise RuntimeError(f"{verb} --mode {mode}: {done.stdout[-1000:]}{done.stderr[-2000:]}")
        ends = [json.loads(path.read_text())["ended_unix_s"] for path in project.glob("results/c/runs/*/*/exit.json")]
        return Done(Counter(self.log.read_text().split()), returned_s, max(ends, default=began_unix_s) - began_unix_s)

    @staticmethod
    def _script(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)


def words(calls: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in calls.most_common())


def submitting(work: Work, points: int) -> list[Row]:
    """Calls and time to submit, where nothing runs."""
    work.site.run("scontrol", "update", "PartitionName=workq", "State=DOWN")
    rows = []
    for mode in MODES:
        done = work.run("submit", mode, points, 0, "--rate", "1000")
        rows += [
            Row(f"Scheduler calls to submit {points:,} points, {mode}", done.calls.total(), "", note=words(done.calls)),
            Row(f"Time to submit {points:,} points, {mode}, no pause between", done.returned_s, "s"),
        ]
        work.site.run("scancel", "--user", str(os.getuid()), check=False)
    work.site.run("scontrol", "update", "PartitionName=workq", "State=UP")
    return rows


def makespans(work: Work, points: int, rounds: int) -> list[Row]:
    """A hundred short points each way, in alternating rounds."""
    taken: dict[str, list[Done]] = {mode: [] for mode in MODES}
    for number in range(rounds):
        for mode in MODES:
            taken[mode].append(work.run("run", mode, points, number, "--no-report"))
    rows = []
    alone = [done.makespan_s for done in taken["single"]]
    for mode in MODES:
        spans = [done.makespan_s for done in taken[mode]]
        compared: dict[str, Any] = {}
        if mode != "single":
            compared = {"against": "single", "theirs": median(alone), "ratio_is": f"single / {mode}"}
            compared["ratio"] = paired_ratio(alone, spans)
        note = f"calls: {words(taken[mode][-1].calls)}"
        rows.append(Row(f"Makespan of {points} short points, {mode}", median(spans), "s", note=note, **compared))
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    options: argparse.Namespace = parser.parse_args()
    if reason := lacking():
        finish([Row("Submission is left out", 0.0, "", note=f"no private Slurm: {reason}")], options)
        return
    many, few, rounds = (20, 20, 1) if options.quick else (1000, 100, options.rounds)
    with tempfile.TemporaryDirectory(prefix="bench-sub-") as directory, private_slurm() as site:
        work = Work(Path(directory), site)
        finish([*submitting(work, many), *makespans(work, few, rounds)], options)


if __name__ == "__main__":
    main()
