"""What a very large campaign needs, measured on as much of it as fits into minutes: the numbers of docs/scale.md.

    python benchmarks/bench_scale.py [--quick] [--points 100000] [--steps 100000]

A campaign is rendered as arrays; its ledger is written as if every run had been submitted and had ended; then what
looks at it is timed and its memory read. A run's events are written by the program's own writer on a virtual clock.
Directories of many entries are compared with the same entries in shards.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from bench_plan import BLOCK, Work
from commands import HARNESS, run
from common import Row, arguments, finish, paired_ratio, seconds

from harness.files import sealed_line
from harness.layout import SHARD_DIGITS, CampaignLayout

#: an events file as a run of so many steps writes it, on a clock that is told the time
EVENTS = """
import sys
from pathlib import Path
from types import SimpleNamespace
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Batch, ModelFacts, StepOutcome
from harness.runtime.stepclock import StepClock

path, steps = Path(sys.argv[1]), int(sys.argv[2])


class Clock:
    at = 1.8e9
    def now(self):
        self.at += 0.0123456
        return self.at
    def unix(self):
        return self.at
    def sleep(self, seconds):
        self.at += seconds


class Session:
    def facts(self):
        return ModelFacts("scripted", 0, 0)
    def to_device(self, batch):
        return batch
    def step(self, batch):
        return StepOutcome(1.2345)


class Pipeline:
    def batches(self):
        while True:
            yield Batch(None, 32)
    def occupancy(self):
        return 1
    def worker_cpus(self):
        return None


clock = Clock()
writer = EventWriter(path, clock)
StepClock(Session(), Pipeline(), clock, writer).run(steps, 1)
writer.end(ok=True)
"""
LEDGER = (
    "import sys; from pathlib import Path; from harness.jobs.ledger import read_statuses as r; r(Path(sys.argv[1]))"
)


def campaign(work: Work, points: int) -> list[Row]:
    """Rendered, then looked at."""
    made = work.harness("render", "--mode", "array", points=points)
    layout = CampaignLayout(work.output)
    groups = sum(path.stat().st_size for path in layout.groups.rglob("*") if path.is_file())
    point = next(layout.runs.rglob("point.json")).stat().st_size
    rows = [
        Row("Memory while rendering, per point", made.peak_mb * 1e3 / points, "KB", note=f"peak {made.peak_mb:.0f} MB"),
        Row("campaign.json, per point", layout.meta.stat().st_size / points, "bytes"),
        Row("point.json of a run", point, "bytes"),
        Row("groups/: scripts, maps, lists of attempts, per run", groups / points, "bytes"),
        Row("Names in the largest directory below runs/", largest(layout.runs), ""),
    ]
    records = ledger(layout)
    size = layout.ledger.stat().st_size
    read = run([sys.executable, "-c", LEDGER, str(layout.ledger)])
    rows += [
        Row("ledger.jsonl of a run in an array that went well", size / points, "bytes", note=f"{records} lines in all"),
        Row(f"Read a ledger of {points:,} runs", read.elapsed_s, "s", note=f"peak {read.peak_mb:.0f} MB"),
    ]
    look = run([HARNESS, "status", str(work.output), "--no-ask"], work.root)
    note = f"peak {look.peak_mb:.0f} MB"
    return [*rows, Row(f"harness status of {points:,} runs, all ended", look.elapsed_s, "s", note=note)]


def ledger(layout: CampaignLayout) -> int:
    """A ledger in which every run has succeeded; the number of its lines."""
    lines = 0
    with layout.ledger.open("w") as stream:
        for meta in layout.groups.glob("*/group.json"):
            group = json.loads(meta.read_text())
            fields = {"job_name": group["job_name"], "script": str(meta.with_name("job.sh")), "group": group["name"]}
            for index, (point_id, repeat, attempt) in enumerate(group["attempts"]):
                key = {"unix_s": 1.8e9, "point_id": point_id, "repeat": repeat, "attempt": attempt}
                state = {"native_state": "", "exit_status": 0, "reason": ""}
                for record in (
                    {"record": "intent", **key, **fields, "index": index},
                    {"record": "submitted", **key, "job_id": f"12345_{index}"},
                    {"record": "state", **key, "state": "RUNNING", **state},
                    {"record": "state", **key, "state": "SUCCEEDED", **state},
                ):
                    stream.write(sealed_line(record))
                    lines += 1
    return lines


def largest(folder: Path) -> int:
    """Entries of the fullest directory of a tree, down to points."""
    shards = [path for path in folder.iterdir() if len(path.name) == SHARD_DIGITS]
    return max(sum(1 for _ in path.iterdir()) for path in (folder, *shards))


def directories(root: Path, entries: int, rounds: int) -> list[Row]:
    """Making and finding entries in one directory, and in shards of it."""
    names = [f"{number * 2654435761 % 2**64:016x}" for number in range(entries)]
    taken: dict[str, list[float]] = {"flat": [], "sharded": []}
    for number in range(rounds):
        for kind, times in taken.items():
            base = root / f"{kind}{number}"
            parents = [base / name[-SHARD_DIGITS:] if kind == "sharded" else base for name in names]
            for parent in set(parents):
                parent.mkdir(parents=True)
            paths = [str(parent / name) for parent, name in zip(parents, names, strict=True)]
            times.append(seconds(lambda paths=paths: [Path(path).mkdir() for path in paths]))  # type: ignore[misc]
    flat, sharded = (min(times) / entries * 1e6 for times in taken.values())
    ratio = paired_ratio(taken["flat"], taken["sharded"])
    return [
        Row(
            f"mkdir among {entries:,}, in shards, this file system",
            sharded,
            "µs",
            "flat",
            flat,
            "flat / sharded",
            ratio,
        )
    ]


def events(root: Path, steps: int) -> list[Row]:
    """The largest file of a long run."""
    path = root / "events.r0.jsonl"
    taken = run([sys.executable, "-c", EVENTS, str(path), str(steps)])
    note = f"{steps:,} steps, peak {taken.peak_mb:.0f} MB"
    return [Row("Events of a rank, per step", path.stat().st_size / steps, "bytes", note=note)]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--points", type=int, default=100_000, help=f"a multiple of {BLOCK}")
    parser.add_argument("--steps", type=int, default=100_000)
    options: argparse.Namespace = parser.parse_args()
    if options.quick:
        options.points, options.steps = 1000, 2000
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as directory:
        root = Path(directory)
        work = Work(root)
        try:
            rows = [*campaign(work, options.points), *directories(root, options.points // 5, 1 if options.quick else 3)]
            finish([*rows, *events(root, options.steps)], options)
        finally:
            work.clear()


if __name__ == "__main__":
    main()
