"""A job that runs the doctor where the cluster's jobs run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from harness import catalog
from harness.cli.health.binding import placement
from harness.cli.health.check import Patient
from harness.errors import UserError
from harness.jobs.render import package_root
from harness.jobs.schedulers.interface import Scheduler

JOB_NAME = "harnessdoctor"


def script(patient: Patient, cluster: str, sweep: Path | None, only: Sequence[str]) -> str:
    """The text of a job script: the doctor's own interpreter must be visible on the nodes, as a home directory is.

    Raises:
        UserError: the cluster has no scheduler, or its values cannot stand in directives.
    """
    if patient.cluster.scheduler == "local":
        raise UserError(f"cluster {cluster} has no scheduler: run harness doctor itself")
    scheduler: Scheduler = catalog.load(catalog.lookup(catalog.SCHEDULERS, patient.cluster.scheduler, "scheduler"))
    request = placement(patient)
    log = str(patient.project_root.absolute() / f"{JOB_NAME}.log")
    lines = [f"{scheduler.PREFIX} {line}" for line in scheduler.directives(patient.cluster, request, JOB_NAME, log)]
    words = [sys.executable, "-m", "harness", "doctor", "--in-job", "--cluster", cluster]
    words += ["--nodes", str(request.nodes), "--ranks-per-node", str(request.ranks_per_node)]
    words += ["--cores-per-rank", str(request.cores_per_rank)]
    words += ["--sweep", str(sweep.absolute())] if sweep else []
    words += [] if patient.measure_speed else ["--no-speed"]
    words += [word for area in only for word in ("--only", area)]
    return "\n".join(
        [
            "#!/bin/bash",
            *lines,
            "",
            f"# the answer lies in {shlex.quote(log)}",
            f"cd {shlex.quote(str(Path.cwd()))} || exit",
            f'export PYTHONPATH={shlex.quote(str(package_root()))}"${{PYTHONPATH:+:$PYTHONPATH}}"',
            f"exec {shlex.join(words)}",
            "",
        ]
    )
