"""One private Slurm for the tests of this directory, and helpers that put it back in order between them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sites.clusters import cluster
from sites.projects import Project, project
from sites.slurm.site import PrivateSlurm, lacking
from sites.slurm.site import private_slurm as running_slurm


@pytest.fixture(scope="session")
def private_slurm() -> Iterator[PrivateSlurm]:
    """A running Slurm of 4 nodes (2 sockets × 8 cores, 4 fake GPUs each); skips where Slurm is not installed."""
    if reason := lacking():
        pytest.skip(f"no private Slurm: {reason}")
    with running_slurm() as site:
        yield site


@pytest.fixture
def make(private_slurm: PrivateSlurm, tmp_path: Path) -> Callable[..., Project]:
    """make(sweep, directory=…, **cluster fields) → a project on the private Slurm."""

    def build(sweep: dict[str, Any], directory: str = "project", **more: Any) -> Project:
        description = cluster("private", "slurm", tmp_path / "data", nodes=2, **more)
        return project(tmp_path / directory, description, sweep, private_slurm.environment)

    return build


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture(scope="session")
def mpi_environment() -> dict[str, str]:
    """What mpirun needs beyond PATH inside these jobs: permission to be root, as containers are."""
    if os.getuid() != 0:
        return {}
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
