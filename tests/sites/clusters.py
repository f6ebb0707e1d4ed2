"""Cluster files for the private sites, and a project directory in which ``harness`` finds them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NODE = {"sockets": 2, "cores_per_socket": 8, "gpus": 4, "memory": "16gb"}


def cluster(name: str, scheduler: str, data: Path, nodes: int, **more: Any) -> dict[str, Any]:
    """A cluster description: nodes as both private sites have them, this interpreter, its own mpirun.

    Nothing is bound to cores: the nodes pretend to have sixteen, mpirun sees this machine's.
    """
    return {
        "name": name,
        "scheduler": scheduler,
        "nodes": nodes,
        "node": NODE,
        "queue": "workq",
        "queues": {"workq": {"max_nodes": nodes, "max_walltime": "01:00:00"}},
        "default_memory": "1gb",
        "storage": {
            "hpctmp": {"path": str(data / "hpctmp")},
            "scratch": {"path": str(data / "scratch"), "scope": "node", "stage_from": "hpctmp"},
        },
        "python": sys.executable,
        "mpi": {"flavour": "openmpi5", "bind": "none", "command": str(Path(sys.executable).parent / "mpirun")},
        **more,
    }


def write_project(root: Path, description: Mapping[str, Any], sweep: Mapping[str, Any]) -> tuple[Path, Path]:
    """(sweep file, cluster file) in a new project directory at ``root``."""
    clusters, sweeps = root / "configs" / "clusters", root / "configs" / "sweeps"
    for directory in (clusters, sweeps):
        directory.mkdir(parents=True)
    cluster_file, sweep_file = clusters / f"{description['name']}.yml", sweeps / f"{sweep['name']}.yml"
    # JSON is YAML in which every text is quoted
    cluster_file.write_text(json.dumps(description))
    sweep_file.write_text(json.dumps(sweep))
    return sweep_file, cluster_file
