from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from harness.files import read_json_lines
from harness.runtime.samplers import NodeSampler, Rapl, Sampler, rss_bytes


def test_records_have_their_fields_and_count_from_the_start(tmp_path: Path) -> None:
    sampler = NodeSampler([os.getpid()], time.monotonic())
    record = sampler.sample()
    assert {"t_s", "unix_s", "cpu_percent", "rss_bytes", "gpu", "disk_read_bytes", "net_recv_bytes"} <= record.keys()
    assert len(record["cpu_percent"]) == os.cpu_count()
    assert 0 <= record["t_s"] < 60
    assert record["disk_read_bytes"] >= 0


def test_memory_is_that_of_the_whole_tree() -> None:
    mine = rss_bytes([os.getppid()]) - rss_bytes([os.getppid()])
    assert mine == 0 or abs(mine) < 1 << 30
    code = "block = bytearray(64 << 20); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert rss_bytes([child.pid]) >= 64 << 20
        child.communicate(b"\n")
    assert rss_bytes([child.pid]) == 0


def test_the_process_ends_with_the_rank_that_holds_its_pipe(tmp_path: Path) -> None:
    path = tmp_path / "samples.n.jsonl"
    sampler = Sampler(path, [os.getpid()], time.monotonic())
    sampler.close()
    sampler.close()
    assert sampler._process.returncode == 0
    records = list(read_json_lines(path))
    assert len(records) >= 1  # the last one is taken when the pipe closes
    assert records[-1]["rss_bytes"] > 0


def test_energy_adds_up_packages_and_survives_a_wrap(tmp_path: Path) -> None:
    def zone(name: str, energy_uj: int) -> None:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "energy_uj").write_text(f"{energy_uj}\n")
        (tmp_path / name / "max_energy_range_uj").write_text("1000000\n")

    zone("intel-rapl:0", 900_000)
    zone("intel-rapl:1", 0)
    zone("intel-rapl:0:0", 5)  # a part of package 0, counted there already
    energy = Rapl(tmp_path)
    zone("intel-rapl:0", 100_000)
    zone("intel-rapl:1", 300_000)
    zone("intel-rapl:0:0", 900_000)
    assert energy.joules() == 0.5
    assert Rapl(tmp_path / "none").joules() is None
