"""``cpu_cores`` confines a busy loader however its rank was started, and its known cost is what is counted.

Four processes that never rest are started from a rank that may use one or two cores. On a busy machine they may get
less than that, never more; the CPU time of a sample does not depend on what else runs.
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

PROGRAM = Path(__file__).with_name("cpu_pipeline.py")
COST_S = 0.01
BATCHES, SAMPLES, WORKERS = 40, 4, 4
#: The kernel's ticks of 10 ms, and batches in the making at the end and not at the begin: one for each worker and one.
TOLERANCE = 0.1 + (WORKERS + 1) / BATCHES
LAUNCHES = {
    "started directly": [],
    "mpirun that binds nothing": ["mpirun", "-np", "{ranks}", "--map-by", "socket", "--bind-to", "none"],
    "mpirun that binds to a socket": ["mpirun", "-np", "{ranks}", "--map-by", "socket"],
    "mpirun that binds to cores": ["mpirun", "-np", "{ranks}", "--map-by", "socket:PE={cores}", "--bind-to", "core"],
}


def loaders(directory: Path, launch: list[str], cores: int, ranks: int = 1) -> list[dict[str, Any]]:
    """What the loader of each rank could use, by rank."""
    point = write_point(directory, spec_of(cpu_cores=cores * ranks, ranks_per_node=ranks))
    command = [word.format(ranks=ranks, cores=cores) for word in launch]
    command += [sys.executable, str(PROGRAM), str(point), str(WORKERS), str(BATCHES), str(SAMPLES), str(COST_S)]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda told: told["rank"])


@pytest.mark.mpi
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("launch", LAUNCHES)
def test_a_busy_loader_uses_the_cores_asked_for_and_no_more(tmp_path: Path, launch: str, cores: int) -> None:
    [told] = loaders(tmp_path, LAUNCHES[launch], cores)
    assert len(told["allowed"]) == cores
    assert set(told["seen"]) <= set(told["allowed"])
    # the counters tick a hundred times a second
    assert told["cores_used"] <= cores * 1.05
    assert told["cpu_s_per_sample"] == pytest.approx(COST_S, rel=TOLERANCE)


@pytest.mark.mpi
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
@pytest.mark.parametrize("launch", ["mpirun that binds nothing", "mpirun that binds to a socket"])
def test_the_loaders_of_two_ranks_have_cores_of_their_own(tmp_path: Path, launch: str) -> None:
    one, other = loaders(tmp_path, LAUNCHES[launch], 1, ranks=2)
    assert not set(one["seen"]) & set(other["seen"])
    assert max(one["cores_used"], other["cores_used"]) <= 1.05
