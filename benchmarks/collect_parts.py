"""What the parts of collecting cost, each alone, and the least that any collection of the same evidence would.

    python benchmarks/collect_parts.py [--quick] [--json FILE] [--runs 1024] [--steps 200] [--ranks 1] [--rounds 7]

CPU time in one process, per run, the least of the rounds, without garbage collection as in the workers; in each round
every part has its turn, so that a busy machine slows all alike. The campaign is that of benchmarks/evidence_maker.py.
The floor is what no rewriting in Python takes away: to open, read and parse the files (the yardstick of
bench_collect.py), to check the seal of each line, to write the tables with the columns that they have, and to parse the
ledger. It holds neither a measurement nor a finding, nor what processes send each other, nor any import.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import bare_readers
import orjson
import pyarrow as pa
from common import Row, arguments, finish
from evidence_maker import make_campaign

from harness.analysis import row
from harness.analysis.campaigns import Attempt, attempts
from harness.analysis.collect import mark_attempts, write
from harness.analysis.evidence import read_run
from harness.analysis.incremental import look
from harness.analysis.pieces import PIECE_ATTEMPTS, Piece
from harness.analysis.reading import read_piece
from harness.analysis.steps_table import StepsWriter
from harness.files import SEAL_LENGTH
from harness.layout import CampaignLayout

FLOOR = ("read and parse", "check seals", "write runs", "write steps", "parse the ledger")


class Parts:
    """Each part as a function of nothing, over all attempts of a campaign in pieces as workers get them."""

    def __init__(self, layout: CampaignLayout):
        self.layout, self.tried = layout, attempts(layout)
        bounds = range(0, len(self.tried), PIECE_ATTEMPTS)
        self.pieces: list[list[Attempt]] = [self.tried[first : first + PIECE_ATTEMPTS] for first in bounds]
        self.paths = [str(path) for path in sorted(layout.runs.rglob("*.json*"))]
        events = (path.read_bytes() for path in sorted(layout.runs.rglob("events.*.jsonl")))
        self.lines = [line for data in events for line in data.split(b"\n")[:-1]]
        self.ledger = layout.ledger.read_bytes().split(b"\n")[:-1]
        self.read: list[Piece] = [read_piece(layout.root.name, piece) for piece in self.pieces]
        self.table = mark_attempts(pa.concat_tables([piece.rows for piece in self.read]))

    def all(self) -> dict[str, Callable[[], object]]:
        name = self.layout.root.name
        return {
            "read and parse": lambda: bare_readers.read_json(self.paths),
            "check seals": lambda: [crc32(line[:-SEAL_LENGTH]) for line in self.lines],
            "write runs": lambda: write(self.table, self.layout),
            "write steps": self.write_steps,
            "parse the ledger": lambda: [orjson.loads(line) for line in self.ledger],
            "ours: find attempts": lambda: attempts(self.layout),
            "ours: look at them": lambda: list(map(look, self.tried)),
            "ours: read runs": lambda: [[read_run(one.layout) for one in piece] for piece in self.pieces],
            "ours: read and measure": lambda: [
                row.measurements([read_run(one.layout) for one in piece]) for piece in self.pieces
            ],
            "ours: all of a piece": lambda: [read_piece(name, piece) for piece in self.pieces],
        }

    def write_steps(self) -> None:
        with StepsWriter(self.layout.steps_parquet) as steps:
            for piece in self.read:
                steps.write(piece.steps)


def cpu_s(part: Callable[[], object]) -> float:
    begin = time.process_time()
    part()
    return time.process_time() - begin


def least_us(parts: Parts, rounds: int) -> dict[str, float]:
    """CPU µs per run of each part."""
    gc.disable()
    told = [{name: cpu_s(part) for name, part in parts.all().items()} for _ in range(rounds)]
    return {name: min(one[name] for one in told) / len(parts.tried) * 1e6 for name in told[0]}


def rows(options: argparse.Namespace) -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        layout = make_campaign(Path(directory) / "parts", options.runs, options.steps, options.ranks)
        least = least_us(Parts(layout), options.rounds)
    found = [Row(name, us, "µs a run") for name, us in least.items()]
    floor = sum(least[name] for name in FLOOR)
    times = f"{floor / least[FLOOR[0]]:.2f} times the yardstick, with no measurement, finding, process or import"
    return [*found, Row(f"floor: {', '.join(FLOOR)}", floor, "µs a run", note=times)]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if options.quick:
        options.runs, options.rounds = 32, 2
    finish(rows(options), options)


if __name__ == "__main__":
    main()
