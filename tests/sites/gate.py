"""A gate before the ranks: jobs that last until a test lets them go, however slow the machine is."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

SCRIPT = """#!/bin/sh
# stands in for the ranks' interpreter: a rank that begins takes a number, and waits to be let through
gate={directory}
if [ "$2" = harness.runtime ]; then
  number=1
  until mkdir "$gate/at.$number" 2>/dev/null; do
    [ -d "$gate" ] || exit
    number=$((number + 1))
  done
  until [ -e "$gate/open" ] || [ -e "$gate/let.$number" ]; do
    [ -d "$gate" ] || exit
    sleep 0.05
  done
fi
exec {python} "$@"
"""


class Gate:
    """``interpreter`` is for a cluster's ``python``. Ranks are numbered from 1 as they come."""

    def __init__(self, directory: Path, python: str = sys.executable):
        directory.mkdir(parents=True)
        self._directory = directory
        path = directory / "python"
        path.write_text(SCRIPT.format(directory=shlex.quote(str(directory)), python=shlex.quote(python)))
        path.chmod(0o755)
        self.interpreter = str(path)

    def arrived(self) -> int:
        """How many ranks have come to the gate so far."""
        return len(list(self._directory.glob("at.*")))

    def let(self, number: int) -> None:
        """Let the rank of this number through, be it there yet or not."""
        (self._directory / f"let.{number}").touch()

    def open(self) -> None:
        """Let every rank through from now on."""
        (self._directory / "open").touch()
