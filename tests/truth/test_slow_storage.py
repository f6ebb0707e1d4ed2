"""A mount whose rate is known: the fetch part of a step, the ceiling it predicts, and the probe agree within 5 %.

On a busy machine the reader and the mount wait for a CPU now and then: the kernel counts for how long, and by so much
the reading may take longer.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sites.processes import pids
from truth.cpu_pipeline import throttled_s

from harness.analysis import measure
from harness.analysis.evidence import read_rank
from harness.analysis.measure import Measurement
from harness.runtime.clock import SystemClock
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Batch, ModelFacts, StepOutcome
from harness.runtime.stepclock import StepClock
from harness.runtime.storage_probe import Limits, probe_existing

RATE_BYTES_PER_S = 1_000_000
FILE_BYTES = 32_768
BATCH = 8
FILES = 400
STEPS = 30
TOLERANCE = 0.05


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """(local directory of files, the same through a mount of RATE_BYTES_PER_S that caches nothing)."""
    if shutil.which("bindfs") is None or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs bindfs and /dev/fuse (Debian's package bindfs)")
    source, mounted = tmp_path / "source", tmp_path / "mounted"
    source.mkdir()
    mounted.mkdir()
    for number in range(FILES):
        (source / f"{number:04}.bin").write_bytes(os.urandom(FILE_BYTES))
    command = ["bindfs", f"--read-rate={RATE_BYTES_PER_S}", "-o", "direct_io", str(source), str(mounted)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"bindfs cannot mount here: {made.stderr.strip()}")
    yield source, mounted
    subprocess.run(["fusermount", "-u", "-z", str(mounted)], check=False)


def delayed_s(mounted: Path) -> float:
    """Seconds for which this process and the mount's could have run so far and did not."""
    server = str(mounted).encode()
    waiting = [os.getpid(), *(pid for pid in pids() if server in text_of(f"/proc/{pid}/cmdline").split(b"\0"))]
    # nanoseconds in a queue for a CPU: the second number of /proc/PID/schedstat (Documentation/scheduler/sched-stats)
    queued_s = sum(int((text_of(f"/proc/{pid}/schedstat").split() or [0, 0])[1]) for pid in waiting) / 1e9
    stolen_s = int(text_of("/proc/stat").split()[8]) / os.sysconf("SC_CLK_TCK")
    return queued_s + stolen_s + throttled_s()


def text_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


class Files:
    """A loader in the training thread: each batch is BATCH whole files; decoding is taking a sum of some bytes."""

    def __init__(self, directory: Path):
        self._files = sorted(directory.iterdir())

    def batches(self) -> Iterator[Batch]:
        place = 0
        while True:
            contents = [self._files[(place + n) % FILES].read_bytes() for n in range(BATCH)]
            place += BATCH
            yield Batch([sum(content[:1000]) for content in contents], BATCH)

    def occupancy(self) -> int | None:
        return None

    def worker_cpus(self) -> list[int] | None:
        return None

    def close(self) -> None:
        return None


class Consumer:
    """A step that takes no time: bindfs makes up for any pause, as a server that reads ahead would."""

    def facts(self) -> ModelFacts:
        return ModelFacts("consumer", 0, 0)

    def to_device(self, batch: Batch) -> Batch:
        return batch

    def step(self, batch: Batch) -> StepOutcome:
        return StepOutcome(0.0)

    def digest(self) -> str:
        return ""

    def close(self) -> None:
        return None


def run(directory: Path, out: Path) -> Measurement:
    clock = SystemClock()
    writer = EventWriter(out, clock)
    StepClock(Consumer(), Files(directory), clock, writer).run(STEPS, 1)
    writer.end(ok=True)
    measured = measure.measure([read_rank(out, 0, []).steps], 2, STEPS - 2)
    assert measured is not None
    return measured


def wait_s(measured: Measurement) -> float:
    return measured.numbers["wait_share"] * measured.numbers["step_mean_s"]


def test_fetch_and_ceiling(tmp_path: Path, mount: tuple[Path, Path]) -> None:
    source, mounted = mount
    began_s = delayed_s(mounted)
    slow = run(mounted, tmp_path / "slow.jsonl")
    fast = run(source, tmp_path / "fast.jsonl")
    delay_s = (delayed_s(mounted) - began_s) / (STEPS - 2)
    batch_s = BATCH * FILE_BYTES / RATE_BYTES_PER_S
    for found_s in (wait_s(slow) - wait_s(fast), BATCH / slow.numbers["images_per_s"]):
        assert batch_s * (1 - TOLERANCE) - delay_s <= found_s <= batch_s * (1 + TOLERANCE) + delay_s


def test_the_probe_finds_the_rate(mount: tuple[Path, Path]) -> None:
    _, mounted = mount
    began_s = delayed_s(mounted)
    found = probe_existing(mounted, Limits(part_s=7.0, small_files=FILES))["small_files"]
    delay_s = delayed_s(mounted) - began_s
    whole_s = found["bytes"] / RATE_BYTES_PER_S
    assert whole_s * (1 - TOLERANCE) - delay_s <= found["seconds"] <= whole_s * (1 + TOLERANCE) + delay_s
