"""Runs as lines of MLPerf's logging, each run a log of its own that MLPerf's compliance checker can read.

Format: ``:::MLLOG`` and a JSON object with namespace, time_ms, event_type, key, value and metadata (mlcommons/logging,
mlperf_logging/mllog). Which keys a log must have, and in what order, is in that package's compliance_checker.

A run of this harness is no submission: it stops after some steps instead of at a quality and evaluates nothing, so
there is no ``eval_accuracy``, and only a model that MLPerf knows has one of its names. docs/comparing.md says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from harness.analysis.points import plain
from harness.model.job import JobState

_POINT, _START, _END = "POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"
#: Our model → the benchmark's name at MLPerf, up to training round 4.0.
_BENCHMARKS = {"resnet50": "resnet"}
#: The whole run is one block: MLPerf counts epochs from 1.
_BLOCK = {"first_epoch_num": 1, "epoch_count": 1}


def mllog_texts(table: pd.DataFrame) -> dict[str, str]:
    """A log for each run that counts and has begun, by a file name of its own."""
    counted = table[table["counts"].fillna(False).astype(bool) & table["started_unix_s"].notna()]
    return {
        f"{run['point_id']}-r{run['repeat']}a{run['attempt']}.log": "".join(run_lines(run))
        for _, run in counted.iterrows()
    }


def run_lines(run: Mapping[str, Any]) -> Iterator[str]:
    """A run's lines in order of time.

    Initialisation is what the run recorded before its steps: staging, import, building of model and pipeline.
    """
    begin_ms = round(1000 * float(run["started_unix_s"]))
    end_ms = begin_ms + round(1000 * (plain(run["job_s"]) or 0.0))
    begun_ms = min(
        begin_ms + round(1000 * sum(plain(run[n]) or 0.0 for n in ("stage_s", "import_s", "build_s"))), end_ms
    )
    own = {"point_id": str(run["point_id"]), "repeat": int(run["repeat"]), "attempt": int(run["attempt"])}

    def line(time_ms: int, kind: str, key: str, value: Any = None, **metadata: Any) -> str:
        record = {"namespace": "", "time_ms": time_ms, "event_type": kind, "key": key, "value": value}
        return f":::MLLOG {json.dumps(record | {'metadata': own | metadata}, ensure_ascii=False)}\n"

    yield line(begin_ms, _START, "init_start")
    for key, value in _facts(run).items():
        yield line(begin_ms, _POINT, key, value)
    yield line(begun_ms, _END, "init_stop")
    yield line(begun_ms, _START, "run_start")
    yield line(begun_ms, _START, "block_start", samples_count=0, **_BLOCK)
    rate, steps = plain(run["images_per_s"]), int(plain(run["steps_done"]) or 0)
    if rate is not None and math.isfinite(rate):
        steady = bool(plain(run["steady"]))
        yield line(end_ms, _POINT, "tracked_stats", {"throughput": rate}, step=steps, steady=steady)
    yield line(end_ms, _END, "block_stop", samples_count=steps * (_global_batch(run) or 0), **_BLOCK)
    status = "success" if run["state"] == JobState.SUCCEEDED.value else "aborted"
    yield line(end_ms, _END, "run_stop", status=status)


def _facts(run: Mapping[str, Any]) -> dict[str, Any]:
    """What was run, by MLPerf's keys; what is not known is left out."""
    name = str(plain(run["model"]) or run["workload"])
    found = {
        "submission_benchmark": _BENCHMARKS.get(name, name),
        "submission_division": "open",
        "submission_org": "none",
        "submission_platform": plain(run["cluster"]),
        "submission_status": "research",
        "cache_clear": plain(run["cache_state"]) == "cold",
        # repeat r uses seed + r
        "seed": int(plain(run["seed"]) or 0) + int(run["repeat"]),
        "global_batch_size": _global_batch(run),
        "gradient_accumulation_steps": 1,
        "train_samples": plain(run["dataset_samples"]),
        "eval_samples": 0,
        "opt_name": plain(run.get("options.optimizer")),
        "opt_base_learning_rate": plain(run.get("options.learning_rate")),
    }
    return {key: value for key, value in found.items() if value is not None}


def _global_batch(run: Mapping[str, Any]) -> int | None:
    batch, ranks = plain(run["batch_size"]), plain(run["ranks"])
    return None if batch is None or ranks is None else int(batch) * int(ranks)
