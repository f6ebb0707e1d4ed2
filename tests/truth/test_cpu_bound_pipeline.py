"""A loader of known CPU cost on one and on two cores: the reported rate is the one that cores and cost predict.

Four worker processes prepare samples of 10 ms of CPU time each. On an idle machine that gives 100 images/s on one core
and 200 on two; what other work takes of these cores is counted (/proc/stat), and so is what a limit of the control
group keeps from them: the loader has all the rest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runtime_support import clean_environment, spec_of, write_point

from harness.analysis import measure
from harness.analysis.evidence import read_rank

PROGRAM = Path(__file__).with_name("cpu_pipeline.py")
COST_S = 0.01
BATCHES, SAMPLES, WORKERS = 80, 4, 4
#: The kernel's ticks of 10 ms are 2 %, batches in the making at the begin and not at the end up to 6 %.
TOLERANCE = 0.15


def ran(directory: Path, cores: int) -> dict[str, Any]:
    """What the loader did and was allowed, and ``images_per_s`` as the analysis of its events has it."""
    point = write_point(directory, spec_of(cpu_cores=cores, options={"clock": "real"}))
    words = [str(point), str(WORKERS), str(BATCHES), str(SAMPLES), str(COST_S)]
    command = [sys.executable, str(PROGRAM), *words]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    measured = measure.measure([read_rank(directory / "events.r0.jsonl", 0, []).steps], 1, BATCHES - 1)
    assert measured is not None
    return told | {"images_per_s": measured.numbers["all_images_per_s"], "wait": measured.numbers["wait_share"]}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_images_per_s_follow_from_cores_and_cost(tmp_path: Path) -> None:
    for cores in (1, 2):
        told = ran(tmp_path / str(cores), cores)
        assert len(told["allowed"]) == cores
        assert told["worker_allowed"] == told["allowed"]
        assert told["cpu_s_per_sample"] == pytest.approx(COST_S, rel=TOLERANCE)
        predicted = told["cores_used"] / COST_S
        assert told["images_per_s"] == pytest.approx(predicted, rel=TOLERANCE)
        idle = cores - told["cores_used"] - told["cores_of_others"]
        assert idle <= TOLERANCE * cores + told["cores_throttled"], "a loader of four processes leaves no core idle"
        assert told["wait"] > 0.95, "nothing but the loader takes time"
