"""Utilisation in the steady window, from the samples that one process per node took about once a second. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from harness.analysis.evidence import RunEvidence
from harness.analysis.measure import Measurement


def utilisation(run: RunEvidence, measured: Measurement, images_per_s: float | None) -> dict[str, float]:
    """Cells of CPU, memory and GPU use; CPU and GPU within the steady window, memory over the whole run."""
    cells: dict[str, float] = {}
    everything = [sample for node in run.samples.values() for sample in node]
    if rss := [float(s["rss_bytes"]) for s in everything if _is_number(s.get("rss_bytes"))]:
        cells["rss_max_bytes"] = max(rss)
    window = _window_unix_s(run, measured)
    if window is None:
        return cells
    inside = {
        node: [s for s in samples if window[0] <= float(s.get("unix_s", -math.inf)) <= window[1]]
        for node, samples in run.samples.items()
    }
    cells |= _cpu(run, inside)
    gpu_lists = {node: [s["gpu"] for s in samples if s.get("gpu")] for node, samples in inside.items()}
    utils = [
        g["util_percent"]
        for lists in gpu_lists.values()
        for gpus in lists
        for g in gpus
        if _is_number(g.get("util_percent"))
    ]
    if utils:
        cells["gpu_util_percent"] = float(np.mean(utils))
    power_w = [
        float(np.mean([sum(g.get("power_w") or 0.0 for g in gpus) for gpus in lists]))
        for lists in gpu_lists.values()
        if lists
    ]
    if sum(power_w) > 0:
        cells["gpu_power_w"] = sum(power_w)
        if images_per_s:
            cells["images_per_joule"] = images_per_s / sum(power_w)
    return cells


def _cpu(run: RunEvidence, inside: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, float]:
    """Mean over the CPUs that ranks may use; all CPUs of the node where that is not on record."""
    shares: list[float] = []
    for node, samples in inside.items():
        allowed: set[int] = set()
        for rank in run.ranks:
            if rank.first("run_start").get("node") == node:
                allowed |= set(rank.first("affinity").get("allowed_cpus") or ())
        for sample in samples:
            percents = sample.get("cpu_percent")
            if isinstance(percents, list) and percents:
                chosen = [percents[cpu] for cpu in allowed if cpu < len(percents)] or percents
                shares.append(float(np.mean(chosen)))
    return {"cpu_percent_mean": float(np.mean(shares))} if shares else {}


def _window_unix_s(run: RunEvidence, measured: Measurement) -> tuple[float, float] | None:
    """Wall-clock begin and end of the steady window on rank 0, or None where they are not on record."""
    rank = run.ranks[0]
    start: Any = rank.first("run_start").get("unix_s")
    inside = rank.steps.step >= measured.steady_step
    if not _is_number(start) or not inside.any():
        return None
    return float(start) + float(rank.steps["begin_s"][inside][0]), float(start) + float(rank.steps["end_s"][-1])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
