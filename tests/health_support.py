"""Stand-ins for an interpreter and a launcher, and a patient that has them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from harness.cli.health.check import Check, Needs, Patient, Request
from harness.config.cluster_file import parse_cluster
from harness.runtime.probe import MARK

INTERPRETER = {"executable": "/py", "versions": {"python": "3.11.7", "harness": "0.1.0"}, "host": {"gpus": []}}


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)
    return path


def interpreter(path: Path, answers: dict[str, Any], otherwise: str = "exit 3") -> Path:
    """An interpreter that answers the probe's question (its words after ``-m harness.runtime.probe``) as given.

    An answer is a dict, a list of dicts, or shell text.
    """
    cases = []
    for question, answer in answers.items():
        said = [answer] if isinstance(answer, dict) else answer
        body = said if isinstance(said, str) else "\n".join(f"cat <<'E'\n{MARK}{json.dumps(one)}\nE" for one in said)
        cases.append(f"{shlex.quote(question)}) {body}\n;;")
    return program(path, 'case "${*:3}" in\n' + "\n".join(cases) + f"\n*) {otherwise} ;;\nesac")


def patient(
    root: Path, in_job: bool = True, needs: Needs | None = None, request: Request | None = None, **fields: Any
) -> Patient:
    """A patient with a cluster of one node with eight cores; ``fields`` change the cluster's file."""
    described = {
        "name": "ward",
        "scheduler": "slurm",
        "node": {"sockets": 2, "cores_per_socket": 4, "gpus": 0},
        "storage": {"hpctmp": {"path": str(root)}},
        **fields,
    }
    cluster = parse_cluster(json.dumps(described), root)
    return Patient(cluster, root, in_job, request=request or Request(), measure_speed=False, needs=needs)


def by_name(checks: Any) -> dict[str, Check]:
    return {check.name: check for check in checks}
