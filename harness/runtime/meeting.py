"""Where the ranks of one node meet before any MPI is up: small files in the attempt's directory.

Ranks must know their neighbours' CPUs before a framework is imported, and MPI may come with the framework
(Horovod), so the exchange cannot carry this.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.files import write_atomically
from harness.runtime.interfaces import Ranks

POLL_SECONDS = 0.01
PATIENCE_SECONDS = 60.0


class Meeting:
    """Meetings of one node's ranks. ``session`` tells one launch from an earlier one in the same directory."""

    def __init__(self, directory: Path, ranks: Ranks, session: str):
        self._directory, self._ranks = directory, ranks
        safe = "".join(c if c.isalnum() else "-" for c in f"{ranks.node}.{session}")
        self._prefix = f".meet.{safe}"
        self._written: list[Path] = []

    def _path(self, name: str, local_rank: int) -> Path:
        return self._directory / f"{self._prefix}.{name}.{local_rank}"

    def tell(self, name: str, value: Any, patience_s: float = PATIENCE_SECONDS) -> list[Any]:
        """What each of the node's ranks told under ``name``, by local rank.

        A rank that has not come within ``patience_s`` is None in the list: it may have died, which its launcher
        will say.
        """
        ranks = self._ranks
        if ranks.local_world == 1:
            return [value]
        mine = self._path(name, ranks.local_rank)
        self._written.append(mine)
        write_atomically(mine, json.dumps(value))
        until = time.monotonic() + patience_s
        answers: dict[int, Any] = {ranks.local_rank: value}
        while len(answers) < ranks.local_world:
            for other in set(range(ranks.local_world)) - answers.keys():
                path = self._path(name, other)
                if path.exists():
                    answers[other] = json.loads(path.read_text())
            if time.monotonic() > until:
                break
            time.sleep(POLL_SECONDS)
        return [answers.get(rank) for rank in range(ranks.local_world)]

    def clear(self) -> None:
        """Remove this rank's files; all others have read them when the run ends."""
        for path in self._written:
            path.unlink(missing_ok=True)
        self._written.clear()


def launch_session(environ: Mapping[str, str], parent_pid: int) -> str:
    """A word that the ranks of one launch share and two launches do not.

    PMIX_NAMESPACE is unique to one mpirun of Open MPI. Elsewhere the launcher's daemon is every local rank's parent,
    unless a container's starter stands between, so the scheduler's step comes before the parent's id.
    """
    if namespace := environ.get("PMIX_NAMESPACE"):
        return namespace
    if "SLURM_STEP_ID" in environ:
        return f"{environ.get('SLURM_JOB_ID', '')}.{environ['SLURM_STEP_ID']}"
    return environ.get("PBS_JOBID") or str(parent_pid)
