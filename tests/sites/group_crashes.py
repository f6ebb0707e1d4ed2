"""kill -9 of the harness while it submits arrays or packs: :mod:`sites.crash_campaign` with ``--mode``.

Run by hand, from the repository's root::

    PYTHONPATH=tests:. python -m sites.group_crashes slurm array --kills 100 --seed 1

Sites: pbs (the fake one), slurm (the private one), and for packs local, too.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from sites import crash_campaign
from sites.crash_campaign import Count, Crashing
from sites.projects import Project


class CrashingGroups(Crashing):
    """As its base, with a mode for every verb that submits."""

    mode = "array"

    def _project(self, number: int) -> Project:
        return Moded(super()._project(number), self.mode)

    def _await_moment(self, work: Project, harness) -> None:  # type: ignore[no-untyped-def]
        """Half of the kills fall while groups are being written, which the ledger does not tell of."""
        groups = len(list(work.layout.groups.glob("*")))
        if self.random.random() < 0.5:
            super()._await_moment(work, harness)
            return
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline and len(list(work.layout.groups.glob("*"))) == groups:
            time.sleep(0.002)
        time.sleep(self.random.uniform(0.0, 0.15))


class Moded(Project):
    """A project whose submitting verbs have a mode."""

    def __init__(self, work: Project, mode: str):
        super().__init__(**vars(work))
        self.mode = mode

    def _argv(self, words: tuple[str, ...]) -> list[str]:
        more = ("--mode", self.mode) if words[0] in ("run", "submit") else ()
        return super()._argv((*words, *more))

    def measured(self) -> Counter[str]:
        """Without the packs' own canaries, which are nobody's task."""
        tasks = json.loads(self.layout.meta.read_text())["tasks"]
        names = {f"{task['point_id']}/r{task['repeat']}" for task in tasks}
        return Counter({name: count for name, count in super().measured().items() if name in names})


def crash(name: str, mode: str, kills: int, seed: int, root: Path) -> Count:
    """Kill the harness ``kills`` times on a fresh site of this kind."""
    with crash_campaign._site(name) as site:
        crashing = CrashingGroups(name, site, root, seed)
        crashing.mode = mode
        return crashing.run(kills)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", choices=("local", "pbs", "slurm"))
    parser.add_argument("mode", choices=("array", "pack"))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    wishes = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="crash") as root:
        count = crash(wishes.site, wishes.mode, wishes.kills, wishes.seed, Path(root))
    print(json.dumps({**asdict(count), "mode": wishes.mode}))
    return 0 if count.is_right else 1


if __name__ == "__main__":
    sys.exit(main())
