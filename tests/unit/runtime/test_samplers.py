from __future__ import annotations

import os
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from harness.files import read_json_lines
from harness.runtime import provenance, samplers
from harness.runtime.samplers import Devices, Gpus, NodeSampler, Sampler, devices_to_sample, rss_bytes


def test_records_have_their_fields_and_count_from_the_start(tmp_path: Path) -> None:
    sampler = NodeSampler([os.getpid()], time.monotonic())
    record = sampler.sample()
    assert {"t_s", "unix_s", "cpu_percent", "rss_bytes", "gpu", "disk_read_bytes", "net_recv_bytes"} <= record.keys()
    assert len(record["cpu_percent"]) == os.cpu_count()
    assert 0 <= record["t_s"] < 60
    assert record["disk_read_bytes"] >= 0


class FakeNvml(types.ModuleType):
    """Two cards; the second does not report its power, as some do."""

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("pynvml")

    def nvmlInit(self) -> None: ...

    def nvmlShutdown(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetName(self, handle: int) -> str | bytes:
        return "Example H1" if handle else b"Example H1"

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> types.SimpleNamespace:
        return types.SimpleNamespace(gpu=40 + handle)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> types.SimpleNamespace:
        return types.SimpleNamespace(used=1000 * (handle + 1))

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        if handle:
            raise self.NVMLError
        return 250_500  # milliwatts

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:
        if handle:
            return 1_500_250  # millijoules
        raise self.NVMLError


def test_gpus_are_sampled_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    assert Gpus(["0", "1"]).sample() == [
        {"util_percent": 40, "memory_bytes": 1000, "power_w": 250.5, "energy_j": None},
        {"util_percent": 41, "memory_bytes": 2000, "power_w": None, "energy_j": 1500.25},
    ]
    facts = provenance.host_facts()
    assert (facts["gpus"], facts["gpu_model"]) == (["Example H1", "Example H1"], "Example H1")


def test_a_node_without_nvml_has_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # the import fails
    assert Gpus(["0", "1"]).sample() == []
    facts = provenance.host_facts()
    assert (facts["gpus"], facts["gpu_model"]) == ([], None)


@pytest.mark.parametrize(
    ("visible", "uuids", "sampled"),
    [
        (["0,1", "0,1"], [None, None], "0,1"),
        ([None, None], [], "0,1"),
        (["3", "2"], [None, None], "3,2"),
        # each rank in a control group of its own, where its GPU is the first one
        (["0", "0"], ["GPU-a", "GPU-b"], "GPU-a,GPU-b"),
        (["0", "0"], ["GPU-a", "GPU-a"], "GPU-a"),
        (["2,3", "2,3"], ["GPU-a", None], "2,3"),
    ],
)
def test_the_gpus_of_a_nodes_ranks_and_no_others_are_sampled(
    visible: list[str | None], uuids: list[str | None], sampled: str
) -> None:
    assert devices_to_sample(1, visible, uuids) == sampled
    assert devices_to_sample(0, visible, uuids) == ""


def devices(root: Path, hardware: set[str], virtual: set[str]) -> Path:
    for name in hardware | virtual:
        (root / name).mkdir(parents=True)
    for name in hardware:
        (root / name / "device").mkdir()
    return root


def test_bytes_that_pass_through_layers_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A logical volume on a RAID of two disks, a squashfs on it; two cards bonded, a VLAN on the bond, loopback."""
    disks = devices(tmp_path / "block", {"sda", "sdb", "cciss!c0d0"}, {"md0", "dm-0", "loop0"})
    cards = devices(tmp_path / "net", {"eth0", "eth1"}, {"bond0", "bond0.7", "lo"})
    read = {"sda": 100, "sda1": 100, "sdb": 150, "md0": 250, "dm-0": 250, "loop0": 90, "cciss/c0d0": 7}
    received = {"eth0": 20, "eth1": 30, "bond0": 50, "bond0.7": 50, "lo": 9000}
    counted = types.SimpleNamespace
    monkeypatch.setattr(
        samplers.psutil,
        "disk_io_counters",
        lambda perdisk: {name: counted(read_bytes=count) for name, count in read.items()},
    )
    monkeypatch.setattr(
        samplers.psutil,
        "net_io_counters",
        lambda pernic: {name: counted(bytes_recv=count) for name, count in received.items()},
    )
    assert Devices(disks, cards).read_and_received() == (257, 50)
    assert Devices(tmp_path / "none", devices(tmp_path / "veth", set(), {"eth0", "lo"})).read_and_received() == (0, 20)


def test_memory_is_that_of_the_whole_tree() -> None:
    code = "block = bytearray(64 << 20); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert rss_bytes([child.pid]) >= 64 << 20
        child.communicate(b"\n")
    assert rss_bytes([child.pid]) == 0


def test_the_process_ends_with_the_rank_that_holds_its_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samplers, "PATIENCE_SECONDS", 120.0)
    path = tmp_path / "samples.n.jsonl"
    sampler = Sampler(path, [os.getpid()], time.monotonic())
    sampler.close()
    sampler.close()
    assert sampler._process.returncode == 0
    records = list(read_json_lines(path))
    assert len(records) >= 1  # the last one is taken when the pipe closes
    assert records[-1]["rss_bytes"] > 0
