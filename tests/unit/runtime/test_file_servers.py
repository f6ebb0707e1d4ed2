"""Counters of Lustre clients, from files as its client writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.runtime import storage

STATS = """snapshot_time             1611856219.310239 secs.nsecs
read_bytes                4096 samples [bytes] 1 4194304 17179869184 72057594037927936
write_bytes               10 samples [bytes] 1 4096 40960
open                      12 samples [regs]
"""


def client(root: Path, device: str, kind: str, stats: str | None = STATS) -> tuple[Path, tuple[Path, ...], Path]:
    """(data directory, llite directories, mounts file) of a node that mounts ``device`` under ``root/lus tre``."""
    data = root / "lus tre" / "set"
    data.mkdir(parents=True)
    llite = root / "llite"
    for name in ("scratch-ffff9a1b2c3d4000", "home-ffff9a1b2c3d8000"):
        (llite / name).mkdir(parents=True)
        if stats is not None and name.startswith("scratch"):
            (llite / name / "stats").write_text(stats)
    mounts = root / "mounts"
    where = str(root / "lus tre").replace(" ", "\\040")
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\n{device} {where} {kind} rw,flock 0 0\n")
    return data, (root / "nothing", llite), mounts


def test_bytes_read_from_the_file_system_of_the_data(tmp_path: Path) -> None:
    data, roots, mounts = client(tmp_path, "10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch", "lustre")
    assert storage.lustre_read_bytes(data, mounts, roots) == 17179869184


def test_a_mounted_sub_directory_counts_as_its_file_system(tmp_path: Path) -> None:
    data, roots, mounts = client(tmp_path, "mgs@tcp:/scratch/project", "lustre")
    assert storage.lustre_read_bytes(data, mounts, roots) == 17179869184


@pytest.mark.parametrize(
    ("device", "kind", "stats"),
    [("srv:/scratch", "nfs4", STATS), ("mgs@tcp:/other", "lustre", STATS), ("mgs@tcp:/scratch", "lustre", None)],
)
def test_what_is_not_known_is_not_told(tmp_path: Path, device: str, kind: str, stats: str | None) -> None:
    data, roots, mounts = client(tmp_path, device, kind, stats)
    assert storage.lustre_read_bytes(data, mounts, roots) is None


def test_nothing_read_yet_is_zero(tmp_path: Path) -> None:
    data, roots, mounts = client(tmp_path, "mgs@tcp:/scratch", "lustre", "open 12 samples [regs]\n")
    assert storage.lustre_read_bytes(data, mounts, roots) == 0


def test_cpu_seconds_are_counted_with_those_of_ended_children() -> None:
    import os
    import subprocess
    import sys

    before = storage.io_counters([os.getpid()])["cpu_s"]
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    assert storage.io_counters([os.getpid()])["cpu_s"] - before >= 0.28
