"""Jobs whose ranks run a loader that never rests, on any site: which CPUs it could use, as it found out itself."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from sites.projects import Project

PROGRAM = Path(__file__).parents[1] / "truth" / "cpu_pipeline.py"
WORKERS, BATCHES, SAMPLES, COST_S = 4, 20, 2, 0.01
#: each worker's user and system time are counted in whole ticks of a hundredth of a second
TICKS_S = WORKERS * 2 / os.sysconf("SC_CLK_TCK")

INTERPRETER = """#!/bin/sh
# stands in for the ranks' interpreter
[ "$2" = harness.runtime ] && exec {python} {program} "$3" {numbers}
exec {python} "$@"
"""


def interpreter(directory: Path) -> str:
    """The path of an interpreter that runs the loader in the place of ``-m harness.runtime``."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "python"
    numbers = f"{WORKERS} {BATCHES} {SAMPLES} {COST_S}"
    path.write_text(INTERPRETER.format(python=sys.executable, program=PROGRAM, numbers=numbers))
    path.chmod(0o755)
    return str(path)


def told(attempt: Path) -> list[dict[str, Any]]:
    """What the loader of each rank of an attempt says, by rank."""
    lines = (attempt / "stdout").read_text().splitlines()
    return sorted((json.loads(line) for line in lines if line.startswith("{")), key=lambda rank: rank["rank"])


def check(work: Project, cores_per_rank: int, ranks: int = 1) -> list[list[dict[str, Any]]]:
    """Every successful attempt's loaders were confined to their cores, each of their workers too, and ranks of one
    node to cores of their own; returns what they said."""
    found = []
    for path in sorted(work.layout.runs.glob("*/r*a*")):
        if json.loads((path / "exit.json").read_text())["code"]:
            continue
        found.append(ranks_told := told(path))
        assert len(ranks_told) == ranks, (path / "stderr").read_text()
        for rank in ranks_told:
            assert len(rank["allowed"]) == cores_per_rank, rank
            assert rank["workers_allowed"] == [rank["allowed"]] * WORKERS, rank
            assert set(rank["seen"]) <= set(rank["allowed"]), rank
            used_s = rank["cpu_s_per_sample"] * BATCHES * SAMPLES
            assert used_s <= cores_per_rank * used_s / rank["cores_used"] + TICKS_S, rank
        for node in {rank["node"] for rank in ranks_told}:
            cpus = [cpu for rank in ranks_told if rank["node"] == node for cpu in rank["allowed"]]
            assert len(cpus) == len(set(cpus)), ranks_told
    assert found
    return found
