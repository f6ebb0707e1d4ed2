"""Images per second of every input pipeline on 1 and 2 cores, against the physical limit and the usual loaders.

    python benchmarks/bench_pipelines.py [--quick] [--json FILE] [--data DIRECTORY] [--only NAME,…]
    python benchmarks/bench_pipelines.py --steps        (what each step costs: CPU time of an image, no pipelines)

All read the same ImageNet-like set of 512 photographs, made at first use, from a warm page cache, to 224 × 224 pixels
in batches of 32. The limit decodes and resizes the same files from memory with libjpeg-turbo and torch's vectorised
resize in a loop that does nothing else, in a thread or in a process for each core, whichever is faster. Every contender
lives in a process confined to the cores; they take turns with blocks of an epoch, so that a drift of the machine falls
on all.
Pipelines for small images in memory are held against the workload's recipe alone, in one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import confined
from common import Row, arguments, finish, paired_ratio
from pipelines_child import IMAGES, OURS, RECIPES, SEED, SIDE, USUAL

DATA = Path(__file__).parents[1] / "results/data/bench"
FIRST = "torch_fast"
AIM = 0.90
IN_WORDS = {"usual torch": "DataLoader as usually written", "usual tf.data": "tf.data as usually written"}
#: blocks of torch_fast, the limit and the usual loaders; of the others
BLOCKS, BLOCKS_OF_OTHERS = 6, 3


class Reading(NamedTuple):
    """What a block brought: images per second, and the CPU seconds of an image."""

    rate: float
    cpu_s: float


#: contender → round → its block
Readings = dict[str, dict[int, Reading]]


def make_photographs(data: Path, workers: int) -> None:
    """Make the image tree that all read, if it is not there yet."""
    from harness.datasets.make import make
    from harness.datasets.manifest import Request

    counts, classes = {"train": IMAGES, "test": 16}, {"classes": 16}
    photographs = Request(format="imagenet", origin="synthetic", counts=counts, options=classes)
    make(data / "imagenet", photographs, workers=workers)


def make_data(data: Path) -> None:
    """Make the sets that are not there yet, which takes about half a minute."""
    from harness.datasets.convert.run import Settings, convert
    from harness.datasets.make import make
    from harness.datasets.manifest import Request

    workers = len(os.sched_getaffinity(0))
    make_photographs(data, workers)
    for encoding in ("lmdb", "tfrecord", "webdataset", "npy"):
        settings = Settings(encoding, side=SIDE if encoding == "npy" else None, shard_samples=32, seed=SEED)
        convert(data / "imagenet", data / f"imagenet.{encoding}", settings, workers)
    for form, options in (("cifar10", {"layout": "python"}), ("mnist", {})):
        counts = {"train": 10_000, "test": 100}
        make(data / form, Request(format=form, origin="synthetic", counts=counts, options=options))


class Child:
    """A measuring process, and what it starts; see ``pipelines_child.py``. It runs only in its turn."""

    def __init__(self, name: str, framework: str, cpus: Sequence[int], data: Path):
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
        self._process = confined.start("pipelines_child.py", [name, framework, str(data)], cpus, **streams)

    def ready(self) -> None:
        """Wait until it has warmed up, and stop it."""
        self.answer()

    def begin(self) -> None:
        assert self._process.stdin
        os.killpg(self._process.pid, signal.SIGCONT)
        print(file=self._process.stdin, flush=True)

    def answer(self) -> dict[str, float]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a measuring process ended with {self._process.wait()}; its message is above")
        os.killpg(self._process.pid, signal.SIGSTOP)
        found: dict[str, float] = json.loads(line)
        return found

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def start(cpus: Sequence[int], data: Path, names: Sequence[str], stack: ExitStack) -> dict[str, list[Child]]:
    """All contenders on one set of cores, warm; ``stack`` ends them. The limit in processes has one for each core."""
    known = {"limit, threads": [(f"limit:0:1:{len(cpus)}", cpus)]}
    if len(cpus) > 1:
        known["limit, processes"] = [(f"limit:{n}:{len(cpus)}:1", [cpu]) for n, cpu in enumerate(cpus)]
    known |= {name: [(name, cpus)] for name in names}
    children: dict[str, list[Child]] = {}
    for name, parts in known.items():
        framework = OURS[name].framework if name in OURS else USUAL.get(name, "torch")
        for told, own in parts:
            child = Child(told, framework, own, data)
            stack.callback(child.close)
            children.setdefault(name, []).append(child)
    for child in (child for found in children.values() for child in found):
        child.ready()
    return children


def block(children: Sequence[Child]) -> Reading:
    """One block of a contender. Its processes begin together, and the last one's end counts."""
    for child in children:
        child.begin()
    found = [child.answer() for child in children]
    images = sum(one["images"] for one in found)
    return Reading(images / max(one["elapsed_s"] for one in found), sum(one["cpu_s"] for one in found) / images)


def measure(cpus: Sequence[int], data: Path, names: Sequence[str], blocks: int, of_others: int) -> Readings:
    """Blocks of every contender in turn; a first one of each is thrown away."""
    readings: Readings = {}
    with ExitStack() as stack:
        children = start(cpus, data, names, stack)
        for number in range(-1, blocks):
            due = [
                name for name in children if number < of_others or name in (FIRST, *USUAL) or name.startswith("limit")
            ]
            turn = number % len(due)
            for name in due[turn:] + due[:turn]:
                taken = block(children[name])
                if number >= 0:
                    readings.setdefault(name, {})[number] = taken
    return readings


def rows_of(readings: Readings, cores: int) -> Iterator[Row]:
    """torch_fast beside the limit and the usual loaders, the others beside the limit."""
    on = f"{cores} core" if cores == 1 else f"{cores} cores"
    best = max((name for name in readings if name.startswith("limit")), key=lambda name: _rate(readings[name]))
    bare = f"bare decode and resize, {best.removeprefix('limit, ') if cores > 1 else 'one thread'}"
    yield _row(readings, FIRST, best, on, bare, "share of the limit", AIM)
    for name in IN_WORDS:
        yield _row(readings, FIRST, name, on, IN_WORDS[name], "ours/theirs", 1.0)
    for name in readings:
        if name in OURS and "," in name:
            recipe = f"recipe, {name.split(', ')[-1]}"
            yield _row(readings, name, recipe, on, "the recipe in a loop, one thread", "ours/theirs")
        elif name in IN_WORDS or (name in OURS and name != FIRST):
            yield _row(readings, name, best, on, bare, "share of the limit")


def _row(
    readings: Readings, ours: str, theirs: str, on: str, against: str, ratio_is: str, aim: float | None = None
) -> Row:
    above, below = readings[ours], readings[theirs]
    both = sorted(above.keys() & below.keys())
    ratio = paired_ratio([above[n].rate for n in both], [below[n].rate for n in both])
    cpu_ms = [1e3 * statistics.median(reading.cpu_s for reading in side.values()) for side in (above, below)]
    return Row(
        f"{IN_WORDS.get(ours, ours)}, {on}",
        round(_rate(above)),
        "images/s",
        against,
        round(_rate(below)),
        ratio_is,
        ratio,
        "" if aim is None else f"≥ {aim:.2f}",
        None if aim is None else ratio.at_least(aim),
        f"CPU {cpu_ms[0]:.2f} and {cpu_ms[1]:.2f} ms/image",
    )


def _rate(blocks: dict[int, Reading]) -> float:
    return statistics.median(reading.rate for reading in blocks.values())


def all_rows(options: argparse.Namespace) -> Iterator[Row]:
    usable = sorted(os.sched_getaffinity(0))
    for cores in map(int, (options.cores or ("1" if options.quick else "1,2")).split(",")):
        if cores > len(usable):
            print(f"{cores} cores: skipped, this process may use {len(usable)}", flush=True)
            continue
        blocks = (1, 1) if options.quick else (BLOCKS, BLOCKS_OF_OTHERS)
        yield from rows_of(measure(usable[:cores], options.data, names(options), *blocks), cores)


def names(options: argparse.Namespace) -> list[str]:
    """The contenders beside the limit."""
    asked = "" if options.quick and options.only is None else options.only
    if asked is None:
        return [*USUAL, *RECIPES, *OURS]
    others = [name for name in asked.split("+") if name in OURS and name != FIRST]
    recipes = [name for name in RECIPES if any("," in other for other in others)]
    return [*USUAL, *recipes, FIRST, *others]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="where the sets are or are to be made")
    parser.add_argument("--only", metavar="NAME+…", help="these pipelines beside torch_fast; none: an empty string")
    parser.add_argument("--cores", help="numbers of cores  [default: 1,2; with --quick 1]")
    parser.add_argument("--steps", action="store_true", help="what each step costs, instead of pipelines")
    options = parser.parse_args()
    make_data(options.data)
    if options.steps:
        confined.run("pipelines_steps.py", [str(options.data)], sorted(os.sched_getaffinity(0))[:1])
        return
    finish(list(all_rows(options)), options)


if __name__ == "__main__":
    main()
