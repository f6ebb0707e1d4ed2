"""Utilisation in the steady window, from the samples that one process per node took about once a second. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from harness.analysis.arrays import mean
from harness.analysis.evidence import RunEvidence
from harness.analysis.measure import Measurement

Sample = Mapping[str, Any]


def utilisation(run: RunEvidence, measured: Measurement, images_per_s: float | None) -> dict[str, float]:
    """Cells of CPU, memory, disk, network and GPU use in the steady window; memory over the whole run.

    Samples and steps are matched on the monotonic clock that a node's processes share, so that a corrected wall clock
    moves nothing.
    """
    cells: dict[str, float] = {}
    everything = [sample for node in run.samples.values() for sample in node]
    if rss := [s["rss_bytes"] for s in everything if type(s.get("rss_bytes")) in _NUMBERS]:
        cells["rss_max_bytes"] = float(max(rss))
    inside = {node: _inside(samples, _window_s(run, node, measured)) for node, samples in run.samples.items()}
    cells |= _cpu(run, inside) | _counters(inside)
    cells |= _gpu([[s for s in samples if s.get("gpu")] for samples in inside.values()])
    if run.spec and sum(map(bool, inside.values())) < run.spec.placement.nodes:
        # sums over nodes of which one tells nothing would be too small
        cells = {name: value for name, value in cells.items() if name not in _SUMS}
    if images_per_s and cells.get("gpu_power_w"):
        cells["images_per_joule"] = images_per_s / cells["gpu_power_w"]
    return cells


def _inside(samples: Iterable[Sample], window: tuple[float, float] | None) -> list[Sample]:
    if window is None:
        return []
    begin, end = window
    return [s for s in samples if type(s.get("t_s")) in _NUMBERS and begin <= s["t_s"] <= end]


def _gpu(nodes: Sequence[Sequence[Sample]]) -> dict[str, float]:
    """From the samples of each node that have GPUs."""
    gpus = [gpu for samples in nodes for sample in samples for gpu in sample["gpu"]]
    utils = [gpu["util_percent"] for gpu in gpus if _is_number(gpu.get("util_percent"))]
    power_w = sum(_gpu_power_w(samples) for samples in nodes if samples)
    memory = [float(gpu["memory_bytes"]) for gpu in gpus if _is_number(gpu.get("memory_bytes"))]
    cells = (
        {"gpu_util_percent": float(np.mean(utils)), "gpu_idle_share": 1 - float(np.mean(utils)) / 100} if utils else {}
    )
    cells |= {"gpu_memory_max_bytes": max(memory)} if memory else {}
    return cells | ({"gpu_power_w": power_w} if power_w > 0 else {})


def _gpu_power_w(samples: Sequence[Sample]) -> float:
    """Of all GPUs of a node: by their energy counters where all have one, else the mean of the power read."""
    first, last = samples[0], samples[-1]
    pairs = [(a.get("energy_j"), b.get("energy_j")) for a, b in zip(first["gpu"], last["gpu"], strict=False)]
    span_s = float(last["t_s"]) - float(first["t_s"])
    if span_s > 0 and pairs and all(_is_number(value) for pair in pairs for value in pair):
        return float(sum(after - before for before, after in pairs)) / span_s
    return float(np.mean([sum(gpu.get("power_w") or 0.0 for gpu in sample["gpu"]) for sample in samples]))


#: Cells that are added over the nodes of a run.
_SUMS = frozenset({"gpu_power_w", "cpu_power_w", "disk_read_per_s", "net_recv_per_s"})
_COUNTERS = {
    "cpu_energy_j": "cpu_power_w",
    "disk_read_bytes": "disk_read_per_s",
    "net_recv_bytes": "net_recv_per_s",
}


def _counters(inside: Mapping[str, Sequence[Sample]]) -> dict[str, float]:
    """Rates of what is counted since sampling began, added over the nodes; of a node from its first to last sample."""
    cells: dict[str, float] = {}
    for counter, cell in _COUNTERS.items():
        for samples in inside.values():
            known = [sample for sample in samples if type(sample.get(counter)) in _NUMBERS]
            if known and (span_s := known[-1]["t_s"] - known[0]["t_s"]) > 0:
                cells[cell] = cells.get(cell, 0.0) + (known[-1][counter] - known[0][counter]) / span_s
    return cells


def _cpu(run: RunEvidence, inside: Mapping[str, Iterable[Sample]]) -> dict[str, float]:
    """Mean over the CPUs that ranks may use; all CPUs of the node where that is not on record."""
    shares: list[float] = []
    for node, samples in inside.items():
        allowed: set[int] = set()
        for rank in run.ranks:
            if rank.first("run_start").get("node") == node:
                allowed |= set(rank.first("affinity").get("allowed_cpus") or ())
        lists = [percents for s in samples if isinstance(percents := s.get("cpu_percent"), list) and percents]
        if allowed and lists and max(allowed) < min(map(len, lists)):
            chosen = np.array(list(map(itemgetter(*allowed), lists)))
            sums = np.add.reduce(chosen.reshape(len(lists), len(allowed)), axis=1)
            shares += (sums / len(allowed)).tolist()
            continue
        for percents in lists:
            shares.append(float(np.mean([percents[cpu] for cpu in allowed if cpu < len(percents)] or percents)))
    return {"cpu_percent_mean": mean(np.array(shares))} if shares else {}


def _window_s(run: RunEvidence, node: str, measured: Measurement) -> tuple[float, float] | None:
    """Begin and end of the steady window on the clock of the node's first rank, which its samples share."""
    of_node = [rank for rank in run.ranks if rank.first("run_start").get("node") == node]
    first = min(of_node, key=lambda rank: int(rank.first("run_start").get("local_rank", 0)), default=None)
    if first is None:
        return None
    # the numbers of steps rise
    place = int(first.steps.step.searchsorted(measured.steady_step))
    if place == len(first.steps):
        return None
    return float(first.steps["begin_s"][place]), float(first.steps["end_s"][-1])


def _is_number(value: Any) -> bool:
    return type(value) in _NUMBERS


_NUMBERS = (int, float)
