"""Utilisation of a node, one record a second, by one process per node beside the ranks.

The process runs at the lowest priority on the CPUs of the node's first rank, so it stays inside the job's allocation;
a record costs 1.3 ms of CPU time (measured with 2 CPUs, one rank, no GPU), 0.13 % of one core. It ends when the rank
that started it ends, however that happens: the rank holds the other end of its standard input.
"""

from __future__ import annotations

import argparse
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from harness.files import json_line
from harness.runtime.nvml import gpu_handles

INTERVAL_SECONDS = 1.0
#: for the last sample, at the lowest priority on what may be a busy node; usually some milliseconds
PATIENCE_SECONDS = 10.0
_RAPL = Path("/sys/class/powercap")
_DISKS = Path("/sys/block")
_CARDS = Path("/sys/class/net")


class Sampler:
    """The sampling process, as its rank sees it. ``origin_s``: the rank's time zero on CLOCK_MONOTONIC."""

    def __init__(self, path: Path, pids: Sequence[int], origin_s: float, gpus: str = ""):
        arguments = ["--out", str(path), "--origin", repr(origin_s), "--pids", ",".join(map(str, pids))]
        arguments += ["--gpus", gpus]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "harness.runtime.samplers", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )

    def close(self) -> None:
        """Let it take a last sample and end."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def devices_to_sample(gpus_per_rank: int, visible: Sequence[str | None], uuids: Sequence[str | None] = ()) -> str:
    """GPUs of a node's ranks, as ``--gpus`` takes them: ids separated by commas; nothing: none.

    Args:
        visible: each rank's CUDA_VISIBLE_DEVICES; None where unset, which leaves only the number to go by.
        uuids: each rank's GPU, where that is known of all: several may call theirs 0, being confined to one each.

    Another job's GPU on the same node must not enter the mean. Where no rank names its devices, the first ones are
    meant: CUDA counts equal GPUs as NVML does, in order of their PCI bus (CUDA_DEVICE_ORDER tells of unequal ones).
    """
    if not gpus_per_rank:
        return ""
    known = [uuid for uuid in uuids if uuid is not None]
    if known and len(known) == len(uuids):
        return ",".join(dict.fromkeys(known))
    named = [word.strip() for words in visible if words for word in words.split(",") if word.strip()]
    if named and len(set(visible)) == 1:
        named = named[: gpus_per_rank * len(visible)]  # all ranks see the same devices and take theirs in order
    return ",".join(dict.fromkeys(named)) or ",".join(str(index) for index in range(gpus_per_rank * len(visible)))


_GPU_QUESTIONS: dict[str, Callable[[Any, Any], float]] = {
    "util_percent": lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
    "memory_bytes": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used,
    "power_w": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
    "energy_j": lambda nvml, gpu: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1000,
}


class Gpus:
    """Utilisation, memory, power and energy of NVIDIA GPUs, by index or UUID; none where NVML is missing.

    NVML reports milliwatts, and millijoules since the driver was loaded (NVML API reference, "Device Queries").
    """

    def __init__(self, devices: Sequence[str]) -> None:
        self._handles: list[Any] = []
        if not devices:
            return
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            usable = gpu_handles(pynvml)
            self._handles = [self._handle(device, usable) for device in devices]
        except Exception:  # no module, no driver, no permission: there is nothing to sample
            self._handles = []

    def _handle(self, device: str, usable: Sequence[Any]) -> Any:
        return usable[int(device)] if device.isdigit() else self._nvml.nvmlDeviceGetHandleByUUID(device)

    def sample(self) -> list[dict[str, float | None]]:
        return [
            {name: self._ask(question, handle) for name, question in _GPU_QUESTIONS.items()} for handle in self._handles
        ]

    def _ask(self, question: Callable[[Any, Any], float], handle: Any) -> float | None:
        try:
            return question(self._nvml, handle)
        except self._nvml.NVMLError:  # a card may not report one of them
            return None


def rss_bytes(pids: Sequence[int]) -> int:
    """Resident memory of the processes and their descendants; pages that they share count once for each."""
    members: dict[int, psutil.Process] = {}
    for pid in pids:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            members.update((member.pid, member) for member in (process, *process.children(recursive=True)))
    members.pop(os.getpid(), None)
    total = 0
    for member in members.values():
        with suppress(psutil.Error):
            total += member.memory_info().rss
    return total


class Rapl:
    """Energy of all CPU packages since the start, where /sys/class/powercap is there and readable.

    Zones named ``package-…`` are counted; others are parts of them (``core``, ``dram``) or hold them (``psys``). The
    counters wrap around at ``max_energy_range_uj`` (Linux, Documentation/power/powercap).
    """

    def __init__(self, root: Path = _RAPL):
        zones = [zone for zone in root.glob("intel-rapl:[0-9]*") if _text(zone / "name").startswith("package")]
        known = {zone: uj for zone in zones if (uj := _microjoules(zone / "energy_uj")) is not None}
        self._last = known if len(known) == len(zones) else {}  # a sum without one of them would be too small
        self._total_uj = 0

    def joules(self) -> float | None:
        """None where there is no counter that may be read."""
        for zone, last in self._last.items():
            value = _microjoules(zone / "energy_uj")
            if value is None:
                return None
            span = (_microjoules(zone / "max_energy_range_uj") or 0) if value < last else 0
            self._total_uj += value - last + span
            self._last[zone] = value
        return self._total_uj / 1e6 if self._last else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _microjoules(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


class Devices:
    """Bytes that the node's disks have read and its network cards received.

    Only what has hardware under it, which sysfs shows as ``device``, is counted: what a logical volume, a RAID or a
    loop reads, its disks read too; what a bond or a bridge receives, came in through its cards; and loopback carries
    what the node's own processes tell each other. A container may have nothing but virtual cards.
    """

    def __init__(self, disks: Path = _DISKS, cards: Path = _CARDS):
        self._disks = _with_hardware(disks)
        self._cards = _with_hardware(cards) or {card.name for card in cards.glob("*")} - {"lo"}

    def read_and_received(self) -> tuple[int, int]:
        """Since the node started."""
        read = psutil.disk_io_counters(perdisk=True)
        received = psutil.net_io_counters(pernic=True)
        return (
            sum(counted.read_bytes for disk, counted in read.items() if disk in self._disks),
            sum(counted.bytes_recv for card, counted in received.items() if card in self._cards),
        )


def _with_hardware(root: Path) -> set[str]:
    # sysfs writes cciss/c0d0 with an exclamation mark
    return {entry.parent.name.replace("!", "/") for entry in root.glob("*/device")}


class NodeSampler:
    """Takes the records; counters start at zero with the first one."""

    def __init__(self, pids: Sequence[int], origin_s: float, gpus: Sequence[str] = ()):
        self._pids, self._origin_s = pids, origin_s
        self._gpus = Gpus(gpus)
        self._devices = Devices()
        self._first = self._devices.read_and_received()
        self._rapl = Rapl()
        psutil.cpu_percent(percpu=True)  # the first call opens the interval

    def sample(self) -> dict[str, Any]:
        disk, network = self._devices.read_and_received()
        joules = self._rapl.joules()
        record = {
            "t_s": round(time.monotonic() - self._origin_s, 6),
            "unix_s": time.time(),
            "cpu_percent": psutil.cpu_percent(percpu=True),
            "rss_bytes": rss_bytes(self._pids),
            "gpu": self._gpus.sample(),
            "disk_read_bytes": disk - self._first[0],
            "net_recv_bytes": network - self._first[1],
        }
        if joules is not None:
            record["cpu_energy_j"] = round(joules, 3)
        return record


def main(argv: Sequence[str]) -> int:
    """Sample until standard input closes."""
    parser = argparse.ArgumentParser(prog="python -m harness.runtime.samplers", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="file to append records to")
    parser.add_argument("--origin", type=float, required=True, help="time zero on CLOCK_MONOTONIC, in seconds")
    parser.add_argument("--pids", required=True, help="the node's ranks, separated by commas")
    parser.add_argument("--gpus", default="", help="index or UUID of each GPU to sample, separated by commas")
    parser.add_argument("--interval", type=float, default=INTERVAL_SECONDS, help="seconds between records")
    options = parser.parse_args(argv)
    os.nice(19)
    gpus = [device for device in options.gpus.split(",") if device]
    sampler = NodeSampler([int(pid) for pid in options.pids.split(",")], options.origin, gpus)
    due = time.monotonic()
    with options.out.open("ab", buffering=0) as stream:
        ended = False
        while not ended:
            due += options.interval
            readable, _, _ = select.select([0], [], [], max(0.0, due - time.monotonic()))
            ended = bool(readable)
            stream.write(json_line(sampler.sample()).encode())
            due = max(due, time.monotonic() - options.interval)
    return 0


if __name__ == "__main__":
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the rank's last words may take a moment; the pipe's end is enough
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main(sys.argv[1:]))
