"""A study from its shipped file in one command: data made, two MPI ranks trained, table and plots there.

One cheap study for each framework; `make studies` runs them all.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.jobs.local_registry import STATE_VARIABLE

pytest.importorskip("torch")
pytest.importorskip("tensorflow")

pytestmark = [pytest.mark.mpi, pytest.mark.framework, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of its own, so that data and results are made in it."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    shutil.copytree(ROOT / "jobscripts", tmp_path / "jobscripts")
    return tmp_path


def run_study(project: Path, name: str, *words: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "harness", "run", f"configs/sweeps/{name}.yml", "--scale", "smoke", *words]
    environment = {**os.environ, STATE_VARIABLE: str(project / "state"), "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    run = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=1700)
    assert run.returncode == code, run.stdout + run.stderr
    return run.stdout + run.stderr


def rows(project: Path, campaign: str) -> list[dict[str, str]]:
    with (project / "results" / campaign / "runs.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.skipif(importlib.util.find_spec("horovod") is None, reason="needs `make horovod`")
def test_alcf_scaling_under_horovod(project: Path) -> None:
    """ResNet34 in TensorFlow: one rank and two, from JPEG files."""
    only = ["--only", "pipeline == 'tf_files'"]
    said = run_study(project, "alcf_horovod_scaling", *only, code=2)
    assert "synthetic:imagenet is not in" in said and "--make-data" in said
    said = run_study(project, "alcf_horovod_scaling", *only, "--make-data")
    assert "2 succeeded" in said and "images/s" in said
    found = {row["ranks_per_node"]: row for row in rows(project, "alcf_horovod_scaling-smoke")}
    assert set(found) == {"1", "2"}
    assert {row["state"] for row in found.values()} == {"SUCCEEDED"}
    assert {row["comm"] for row in found.values()} == {"horovod"}
    assert {row["parameters"] for row in found.values()} == {"21819560"}, (
        "the published network, though on small images"
    )
    plots = project / "results" / "alcf_horovod_scaling-smoke" / "plots"
    assert (plots / "images-per-second.png").stat().st_size > 5000


def test_aws_workers(project: Path) -> None:
    """ResNet50 in torch on a tree of JPEGs: no worker and two."""
    assert "2 succeeded" in run_study(project, "aws_workers", "--make-data")
    found = {row["workers"]: row for row in rows(project, "aws_workers-smoke")}
    assert set(found) == {"0", "2"} and {row["state"] for row in found.values()} == {"SUCCEEDED"}
    assert {row["dataset_origin"] for row in found.values()} == {"synthetic"}
