"""Points to run, and what runs leave behind, for the tests of the compute side."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.files import parse_line
from harness.model.axes import Axes, Point
from harness.model.job import Placement, RunSpec

ROOT = Path(__file__).resolve().parents[1]
LAUNCHER_VARIABLES = ("OMPI_", "PMI_", "PMIX_", "SLURM", "PALS_", "MPI_LOCAL", "PBS_")


def spec_of(data_path: str = "/nonexistent", cores_per_node: int | None = None, **axes: Any) -> RunSpec:
    """The run specification of a replay point on one node, unless ``axes`` say otherwise."""
    given: dict[str, Any] = {"workload": "replay", "framework": "none", **axes}
    made = Axes(**given)
    placement = Placement(
        cluster="local",
        nodes=made.nodes,
        ranks_per_node=made.ranks_per_node,
        cores_per_node=cores_per_node or max(made.cpu_cores, made.ranks_per_node),
        walltime_s=600,
        data_path=data_path,
    )
    point_id = Point(axes=made).id
    return RunSpec(
        campaign="t", point_id=point_id, repeat=0, attempt=1, axes=made, placement=placement, harness_version="0"
    )


def write_point(directory: Path, spec: RunSpec) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "point.json"
    path.write_text(spec.model_dump_json(), encoding="utf-8")
    return path


def clean_environment(**extra: str) -> dict[str, str]:
    """This process's environment without the variables of a launcher that the tests may run under."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHER_VARIABLES)}
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    binaries = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    return {**kept, **root, "PYTHONPATH": str(ROOT), "PATH": binaries, **extra}


def run_point(path: Path, ranks: int = 0, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess:
    """Run a point: directly, or with ``ranks`` ≥ 1 under mpirun."""
    launcher = ["mpirun", "-np", str(ranks), "--map-by", "socket", "--bind-to", "none"] if ranks else []
    return subprocess.run(
        [*launcher, sys.executable, "-m", "harness.runtime", str(path)],
        env=dict(environment or clean_environment()),
        capture_output=True,
        text=True,
        timeout=500,
    )


def events(directory: Path, rank: int = 0) -> list[dict[str, Any]]:
    """All events of a rank; every line must be whole and sealed."""
    lines = (directory / f"events.r{rank}.jsonl").read_bytes().splitlines()
    assert all(b'"crc"' in line for line in lines)
    records = [parse_line(line) for line in lines]
    assert None not in records
    return [record for record in records if record is not None]


def of_kind(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [record for record in records if record["event"] == kind]


def step_column(records: list[dict[str, Any]], name: str) -> list[Any]:
    """One column over all ``steps`` events."""
    return [value for record in of_kind(records, "steps") for value in record[name]]
