"""Collecting: a campaign's evidence against a bare JSON parser, again unchanged, against JUBE; logs of other programs.

    python benchmarks/bench_collect.py [--quick] [--json FILE] [--runs 10000] [--steps 200] [--ranks 1] [--pairs 3]

Both sides are whole commands, so starting Python and importing count, and use the same number of processes. The
evidence is that of benchmarks/evidence_maker.py; the bare readers are in benchmarks/bare_readers.py. Derived files are
removed before each collection. Everything is read from the page cache.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

import psutil
from collect_jube import jube_seconds
from common import Row, arguments, finish, paired_ratio, seconds
from evidence_maker import make_campaign
from text_logs import make_logs

HERE = Path(__file__).parent
PROCESSES = min(len(os.sched_getaffinity(0)), 8)
DERIVED = ("collected.json", "runs.csv", "runs.parquet", "steps.parquet")
COLLECT = [sys.executable, "-m", "harness", "collect"]


def run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def bare(kind: str, directory: Path, processes: int, *more: str) -> float:
    return seconds(lambda: run(sys.executable, HERE / "bare_readers.py", kind, directory, str(processes), *more))


def collected(root: Path, anew: bool = True) -> float:
    """Seconds of ``harness collect``; ``anew``: without what an earlier collection left."""
    if anew:
        for name in DERIVED:
            (root / name).unlink(missing_ok=True)
    return seconds(lambda: run(*COLLECT, root))


def campaign_rows(root: Path, options: argparse.Namespace) -> tuple[list[Row], float]:
    """Rows of the campaign in ``root``, and the seconds that one run of it costs."""
    of = f"{options.runs} runs × {options.steps} steps × {options.ranks} rank(s)"
    megabytes = sum(p.stat().st_size for p in root.rglob("*.json*")) / 1e6
    bare("json", root, PROCESSES), collected(root)  # the page cache, compiled modules
    pairs = [(collected(root), bare("json", root, PROCESSES)) for _ in range(options.pairs)]
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    again = [collected(root, anew=False) for _ in range(options.pairs)]
    ratio = paired_ratio(ours, theirs)
    return [
        Row(
            f"collect {of}",
            median(ours),
            "s",
            "orjson on the same files",
            median(theirs),
            "ours / bare",
            ratio,
            "≤ 2",
            ratio.at_most(2),
            f"{megabytes:.0f} MB of JSON, {PROCESSES} processes, whole commands",
        ),
        Row(f"collect {of} again, unchanged", median(again), "s", aim="< 1 s", met=median(again) < 1),
    ], median(ours) / options.runs


def jube_row(what: str, directory: Path, kind: str, options: argparse.Namespace, ours_s: float) -> Row:
    """Our seconds for one run or log against JUBE's for one of so many that its start, 0.3 s, weighs little."""
    logs = make_logs(directory / f"{kind}-logs", options.jube_runs, options.steps, kind)
    theirs, note = jube_seconds(directory / f"{kind}-jube", logs, kind, repetitions=2 if options.quick else 3)
    if not theirs:
        return Row(what, ours_s * 1e3, "ms", note=note)
    ratio = paired_ratio([t / options.jube_runs for t in theirs], [ours_s] * len(theirs))
    packages = f"{options.jube_runs} work packages{', whose log has the same numbers as lines' * (kind == 'columns')}"
    return Row(
        what,
        ours_s * 1e3,
        "ms",
        "jube analyse + result",
        median(theirs) / options.jube_runs * 1e3,
        "theirs / ours",
        ratio,
        "≥ 20",
        ratio.at_least(20),
        f"{packages}; {PROCESSES} processes of ours, one of theirs; {note}",
    )


def foreign_row(directory: Path, options: argparse.Namespace) -> tuple[Row, float]:
    """The row of logs of another program, and the seconds that one of them costs."""
    count = options.logs
    make_logs(directory, count, options.steps, "alcf")
    table = directory.with_suffix(".csv")
    command = [*COLLECT, "--logs", f"{directory}/*.log", "--pattern", "alcf", "-o", table]

    def once() -> float:
        return seconds(lambda: run(*command))

    once(), bare("regex", directory, PROCESSES, "alcf")
    pairs = [(once(), bare("regex", directory, PROCESSES, "alcf")) for _ in range(options.pairs)]
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    ratio = paired_ratio(ours, theirs)
    row = Row(
        f"collect --logs: {count} logs × {options.steps} steps",
        median(ours),
        "s",
        "lines and regular expressions alone",
        median(theirs),
        "ours / bare",
        ratio,
        "≤ 2",
        ratio.at_most(2),
        f"pattern alcf, {PROCESSES} processes, whole commands",
    )
    return row, median(ours) / count


def peaks_mib(root: Path) -> tuple[float, float]:
    """MiB at most, seen every 10 ms, of the command that collects, and of the largest process that it started."""
    for name in DERIVED:
        (root / name).unlink(missing_ok=True)
    command = psutil.Popen([*COLLECT, str(root)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    own, other = 0, 0
    while command.poll() is None:
        with suppress(psutil.Error):
            own = max(own, command.memory_info().rss)
            for process in command.children(recursive=True):
                other = max(other, process.memory_info().rss)
        time.sleep(0.01)
    return own / 2**20, other / 2**20


def memory_rows(root: Path, huge: Path, steps: int, ranks: int) -> list[Row]:
    make_campaign(huge, 1, steps, ranks, repeats=1)
    megabytes = sum(p.stat().st_size for p in huge.rglob("*.jsonl")) / 1e6
    rows = []
    for what, path in (("many runs", root), (f"one run of {steps} steps × {ranks} ranks", huge)):
        own, other = peaks_mib(path)
        note = f"the largest process that it started: {other:.0f} MiB" if other else "in one process"
        rows.append(Row(f"collect, memory at most: {what}", own, "MiB", note=note))
    took = seconds(lambda: collected(huge))
    return [*rows, Row(f"collect one run of {steps} steps × {ranks} ranks", took, "s", note=f"{megabytes:.0f} MB")]


def main() -> None:
    parser = arguments(__doc__)
    for name, number in (("runs", 10_000), ("steps", 200), ("ranks", 1), ("pairs", 3), ("logs", 1000)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--jube-runs", type=int, default=240)
    options = parser.parse_args()
    huge = (100_000, 8)
    if options.quick:
        options.runs, options.logs, options.pairs, options.jube_runs, huge = 300, 60, 2, 10, (5_000, 2)
    scratch = Path(tempfile.mkdtemp(prefix="bench-collect-"))
    try:
        make_campaign(scratch / "many", options.runs, options.steps, options.ranks)
        rows, each_s = campaign_rows(scratch / "many", options)
        rows.append(jube_row("collect, per run, against JUBE", scratch, "columns", options, each_s))
        foreign, log_s = foreign_row(scratch / "foreign", options)
        rows += [foreign, jube_row("collect --logs, per log, against JUBE", scratch, "alcf", options, log_s)]
        rows += memory_rows(scratch / "many", scratch / "huge", *huge)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    finish(rows, options)


if __name__ == "__main__":
    main()
