"""``harness run --ladder`` on real files: every rung runs, and each part of a step is told with its recorded waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.jobs.local_registry import STATE_VARIABLE

pytest.importorskip("torch")

pytestmark = [pytest.mark.mpi, pytest.mark.framework, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
SWEEP = """\
name: climb
base:
  workload: resnet_imagenet
  framework: torch
  model: resnet34
  dataset: "synthetic:imagenet"
  pipeline: torch_files
  batch_size: 4
  cpu_cores: 2
  parallel_threads: 1
  workers: 1
  options.image_size: 32
data:
  "synthetic:imagenet": {train: 48, test: 4, classes: 4, side: 32}
steps: {warmup: 1, timed: 16}
walltime: 5m
"""
CLUSTER = """\
name: here
scheduler: local
nodes: 1
node: auto
storage: {hpctmp: {path: %s}}
mpi: {flavour: openmpi5, bind: none}
python: auto
"""


def harness(*words: str, state: Path) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "harness", *words],
        cwd=ROOT,
        env={**os.environ, STATE_VARIABLE: str(state)},
        capture_output=True,
        text=True,
        timeout=1700,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_every_rung_of_a_ladder_on_files(tmp_path: Path) -> None:
    state, results = tmp_path / "state", ["--results", str(tmp_path / "results")]
    sweep, cluster = tmp_path / "climb.yml", tmp_path / "here.yml"
    sweep.write_text(SWEEP)
    cluster.write_text(CLUSTER % json.dumps(str(tmp_path / "data")))
    words = [str(sweep), "--cluster", str(cluster), *results, "--ladder", "--make-data", "--no-report"]
    harness("run", *words, state=state)
    [point] = json.loads(harness("stalls", "climb-ladder", *results, "--json", state=state))
    parts: dict[str, Any] = {part["part"]: part for part in point["ladder"]}
    assert list(parts) == ["compute", "copy", "preparation", "read", "fetch", "residual"]
    # what the rungs add up to is the point's own step, whatever else the machine did
    assert sum(part["seconds"] for part in parts.values()) == pytest.approx(point["step_s"])
    assert parts["compute"]["seconds"] > 0
    recorded = point["recorded"]
    assert recorded["compute"] > 0 and recorded["wait"] >= 0
    states = {
        json.loads(line)["state"]
        for path in (tmp_path / "results").glob("climb-ladder/runs/*/*/events.r0.jsonl")
        for line in path.open()
        if '"event":"cache"' in line
    }
    assert {"cold", "warm"} <= states, "the storage's rungs read what they are named for"
