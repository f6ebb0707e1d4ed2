"""A disk that is really full: one message, exit code 2, nothing lost; when there is room the same command goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from sites.processes import wait_for

from harness.files import read_json_lines
from harness.jobs import engine
from harness.jobs.ledger import read_statuses
from harness.jobs.local_registry import STATE_VARIABLE, Registry
from harness.layout import CampaignLayout

ROOT = Path(__file__).resolve().parents[2]
SWEEP = """\
name: replay
base: {workload: replay, options.clock: CLOCK, options.consume_s: 0.01}
matrix: {prefetch: [1, 2, 3]}
steps: {warmup: 0, timed: STEPS}
walltime: "00:02:00"
"""
FULL = "No space left on device"


class Disk:
    """A file system of its own, in memory."""

    def __init__(self, path: Path):
        self.path = path
        path.mkdir()

    def mount(self, size: str) -> bool:
        words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "harness-test", str(self.path)]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0

    def resize(self, size: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.path)], check=True)

    def protect(self) -> None:
        """Make it one that can only be read, as soon as the last job's shell has closed its log there."""
        words = ["mount", "-o", "remount,ro", str(self.path)]
        wait_for(lambda: subprocess.run(words, capture_output=True, check=False).returncode == 0)

    def fill(self) -> None:
        """Take every block that is left."""
        with (self.path / "filler").open("ab", buffering=0) as stream:
            for block in (65536, 4096, 1):
                while True:
                    try:
                        stream.write(b"x" * block)
                    except OSError:
                        break

    def empty(self) -> None:
        (self.path / "filler").unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path / "disk")
    if not disk.mount("1m"):
        pytest.skip("mounting a tmpfs needs root")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk.path)], check=False)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    registry = Registry(tmp_path / "state")
    yield registry.root
    for job in registry.all():
        engine.cancel(registry, job.id)


def start(state: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "harness", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, STATE_VARIABLE: str(state), "COLUMNS": "200"},
    )


def harness(state: Path, *words: str, code: int = 0) -> str:
    process = start(state, *words)
    said, _ = process.communicate(timeout=400)
    assert process.returncode == code, said
    assert "Traceback" not in said
    return said


def refused(state: Path, *words: str) -> None:
    """One message that says what is the matter, and what to do."""
    said = harness(state, *words, code=2)
    assert said.count(FULL) == 1, said
    assert "make room there" in said
    assert len([line for line in said.splitlines() if line.startswith("harness: ")]) == 1


def measured(layout: CampaignLayout) -> Counter[str]:
    """How many runs with whole evidence each task has."""
    found: Counter[str] = Counter()
    for path in layout.runs.glob("*/*/events.r0.jsonl"):
        whole = any(record["event"] == "run_end" and record["ok"] for record in read_json_lines(path))
        found[f"{path.parent.parent.name}/{path.parent.name.partition('a')[0]}"] += whole
    return found


class Sweep:
    def __init__(self, disk: Disk, state: Path, root: Path, clock: str = "virtual", steps: int = 5):
        self.layout = CampaignLayout(disk.path / "results" / "replay")
        self.state, self.file = state, root / "sweep.yml"
        self.file.write_text(SWEEP.replace("CLOCK", clock).replace("STEPS", str(steps)))
        self.words = ["run", str(self.file), "--no-report", "--results", str(disk.path / "results")]

    def states(self) -> Counter[str]:
        return Counter(status.state.value for status in read_statuses(self.layout.ledger).values())


@pytest.mark.mpi
def test_a_campaign_that_finds_no_room_begins_when_there_is(disk: Disk, state: Path, tmp_path: Path) -> None:
    sweep = Sweep(disk, state, tmp_path)
    disk.fill()
    refused(state, *sweep.words)
    disk.empty()
    harness(state, *sweep.words)
    assert measured(sweep.layout) == dict.fromkeys(measured(sweep.layout), 1)
    assert sweep.states()["SUCCEEDED"] == 3


@pytest.mark.mpi
def test_a_disk_that_fills_up_under_a_run_costs_that_run_alone(disk: Disk, state: Path, tmp_path: Path) -> None:
    sweep = Sweep(disk, state, tmp_path, "real", 500)
    first = start(state, *sweep.words)
    wait_for(lambda: sweep.states()["SUCCEEDED"] == 1 and sweep.states()["RUNNING"] == 1)
    disk.fill()
    said, _ = first.communicate(timeout=240)
    assert first.returncode in (1, 2), said  # whichever of the two meets the full disk first: the run, or the harness
    assert "Traceback" not in said
    assert sum(measured(sweep.layout).values()) == 1
    disk.empty()
    harness(state, *sweep.words)
    counts = measured(sweep.layout)
    assert set(counts.values()) == {1} and len(counts) == 3
    assert sweep.states()["SUCCEEDED"] == 3


@pytest.mark.mpi
def test_tables_stay_as_they_were(disk: Disk, state: Path, tmp_path: Path) -> None:
    sweep = Sweep(disk, state, tmp_path)
    harness(state, *sweep.words)
    harness(state, "collect", str(sweep.layout.root))
    before = sweep.layout.runs_csv.read_bytes()
    sweep.layout.collected.unlink()
    disk.fill()
    refused(state, "collect", str(sweep.layout.root))
    refused(state, "plot", str(sweep.layout.root))
    refused(state, "report", str(sweep.layout.root))
    assert sweep.layout.runs_csv.read_bytes() == before
    disk.empty()
    harness(state, "collect", str(sweep.layout.root))
    assert sweep.layout.runs_csv.read_bytes() == before


def test_a_set_is_made_when_there_is_room(disk: Disk, state: Path) -> None:
    words = ["data", "make", "mnist", "--to", str(disk.path / "set"), "--train", "20000", "--test", "10"]
    refused(state, *words)
    disk.resize("20m")
    harness(state, *words)
    assert "match" in harness(state, "data", "verify", str(disk.path / "set"))


def test_a_tree_goes_on_where_the_disk_was_full(disk: Disk, state: Path) -> None:
    root = disk.path / "set"
    words = ["data", "make", "imagenet", "--to", str(root), "--classes", "2", "--train", "120", "--test", "2"]
    said = harness(state, *words, code=2)
    assert "the set needs about" in said and "are free there" in said
    disk.resize("40m")
    first = start(state, *words, "--workers", "1")
    wait_for(lambda: list(root.rglob("*.JPEG")))
    disk.fill()
    said, _ = first.communicate(timeout=240)
    assert first.returncode == 2 and said.count(FULL) == 1 and "Traceback" not in said, said
    disk.empty()
    assert "made in" in harness(state, *words)
    assert "match" in harness(state, "data", "verify", str(root))


@pytest.mark.parametrize("encoding", ["tfrecord", "tfrecord_decoded", "lmdb", "npy", "webdataset", "jpeg"])
def test_data_are_converted_when_there_is_room(encoding: str, disk: Disk, state: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "set", disk.path / "converted"
    harness(state, "data", "make", "mnist", "--to", str(source), "--train", "2000", "--test", "100")
    words = ["data", "convert", str(source), "--encoding", encoding, "--to", str(target), "--shard-samples", "500"]
    disk.fill()
    refused(state, *words)
    disk.empty()
    disk.resize("60m")
    harness(state, *words)
    assert "match" in harness(state, "data", "verify", str(target))


def test_data_are_staged_when_there_is_room(disk: Disk, state: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "set", disk.path / "copy"
    harness(state, "data", "make", "mnist", "--to", str(source), "--train", "20000", "--test", "100")
    said = harness(state, "data", "stage", str(source), str(target), code=2)
    assert "free" in said and "needed" in said
    disk.resize("60m")
    harness(state, "data", "stage", str(source), str(target))
    assert "match" in harness(state, "data", "verify", str(target))


@pytest.mark.mpi
def test_results_that_can_only_be_read_are_read(disk: Disk, state: Path, tmp_path: Path) -> None:
    sweep = Sweep(disk, state, tmp_path)
    harness(state, *sweep.words)
    disk.protect()
    root = str(sweep.layout.root)
    assert "cannot be written" in harness(state, "collect", root, code=2)
    assert harness(state, "table", root, "--format", "csv").count("\n") == 4
    harness(state, "report", root, "-o", str(tmp_path / "report.html"))
    assert "3 succeeded" in harness(state, "status", root)
    assert "Read-only file system; name a place" in harness(state, "plot", root, code=2)
    assert "Read-only file system; name a place" in harness(state, *sweep.words, "--fresh", code=2)
    for verb in ("wait", "cancel", "retry", "resume"):
        assert f"{root}: Read-only file system; name a place" in harness(state, verb, root, code=2)
