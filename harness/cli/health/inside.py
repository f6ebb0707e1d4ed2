"""Commands run in the environment that the cluster's jobs get: modules, conda, prelude, variables, container."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.cli.health.check import Patient
from harness.jobs import launchers, shell
from harness.jobs.launchers import Shell, quote
from harness.jobs.render import checkout, package_root, render_environment
from harness.jobs.schedulers.interface import Answer
from harness.runtime.probe import MARK

#: an import of TensorFlow from a busy shared file system takes minutes
TIMEOUT_S = 300.0
#: exit code of a script whose environment could not be set up
NO_ENVIRONMENT_CODE = 97

_SCRIPT = """\
set -u
fail() { printf '%s\\n' "$1" >&2; exit 97; }
unset OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS NUMEXPR_NUM_THREADS
"""


@dataclass(frozen=True)
class Told:
    """What probes said, and how their command ended."""

    records: list[dict[str, Any]]
    answer: Answer

    @property
    def trouble(self) -> str:
        """Why there is no record, in a line."""
        if self.answer.returncode is None:
            return "no answer in time"
        lines = [line.strip() for line in self.answer.stderr.splitlines() if line.strip()]
        code = self.answer.returncode
        outcome = f"killed by {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"exit code {code}"
        return f"{lines[-1]} ({outcome})" if lines else outcome


def run(patient: Patient, words: Sequence[str | Shell], timeout_s: float = TIMEOUT_S) -> Answer:
    """Run a command as a job script would, but for the container."""
    line = " ".join(quote(word) for word in words)
    script = f"{_SCRIPT}{render_environment(patient.cluster, patient.project_root)}\nexec {line}\n"
    return shell.run(["bash", "-c", script], timeout_s, end_if_interrupted=True)


def probe(patient: Patient, question: Sequence[str], before: Sequence[str] = (), timeout_s: float = TIMEOUT_S) -> Told:
    """Ask :mod:`harness.runtime.probe` with the ranks' own interpreter, in its container if it has one.

    ``before``: a launcher and its arguments.
    """
    cluster, wrapper = patient.cluster, []
    if cluster.container is not None:
        binds = [str(root) for root in [checkout()] if root]
        gpus = cluster.node.gpus > 0 and patient.in_job
        wrapper = launchers.container_argv(cluster.container, gpus, [*binds, *_directories(question)])
    # env, since a container's own start-up may replace PYTHONPATH
    program = ["env", Shell('PYTHONPATH="$PYTHONPATH"'), cluster.python, "-m", "harness.runtime.probe", *question]
    answer = run(patient, [*before, *wrapper, *program], timeout_s)
    return Told(records(answer.stdout), answer)


def own_probe(question: Sequence[str], timeout_s: float) -> Told:
    """Ask the probe with this process's interpreter: about directories, for which any Python will do.

    In a process of its own, since a file system that hangs would hang this one.
    """
    path = os.pathsep.join([str(package_root()), *filter(None, [os.environ.get("PYTHONPATH")])])
    argv = [sys.executable, "-m", "harness.runtime.probe", *question]
    answer = shell.run(argv, timeout_s, {"PYTHONPATH": path}, end_if_interrupted=True)
    return Told(records(answer.stdout), answer)


def _directories(question: Sequence[str]) -> list[str]:
    return [word for word in question if word.startswith("/")]


def records(text: str) -> list[dict[str, Any]]:
    """The probes' answers among whatever else was printed."""
    found = []
    for line in text.splitlines():
        _, mark, content = line.partition(MARK)
        if mark:
            try:
                found.append(json.loads(content))
            except ValueError:  # two ranks' output mixed by a launcher
                continue
    return found


def nodes_of_job() -> list[str]:
    """The hosts of the PBS or Torque job that this runs in, each once; empty elsewhere."""
    try:
        with open(os.environ["PBS_NODEFILE"]) as stream:  # noqa: PTH123
            return list(dict.fromkeys(stream.read().split()))
    except (KeyError, OSError):
        return []
