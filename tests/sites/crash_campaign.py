"""kill -9 of the harness at random moments, over and over, and the count of what that broke: nothing, if it is right.

Run by hand, from the repository's root::

    PYTHONPATH=tests:. python -m sites.crash_campaign pbs --kills 200 --seed 1

Sites: local, pbs (the fake one), slurm (the private one). Prints one JSON object; exit code 1 if a task was measured
twice or not at all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.files import read_json_lines
from harness.jobs.lock import read_holder
from harness.jobs.process import is_alive
from sites import processes
from sites.clusters import cluster
from sites.pbs.site import FakePbs, fake_pbs
from sites.projects import Project, project, replay
from sites.slurm.site import PrivateSlurm, private_slurm

#: tasks of a campaign; this machine runs one at a time
TASKS = {"local": 4, "pbs": 8, "slurm": 8}
#: after the last kill the campaign is given this many whole runs to finish; one must do
FINISHES = 4
VERBS = ("run", "run", "submit", "wait")


@dataclass
class Count:
    """What a crash campaign came to. ``too_late``: kills that hit a harness which had just ended."""

    site: str
    seed: int
    campaigns: int = 0
    kills: int = 0
    too_late: int = 0
    tasks: int = 0
    attempts: int = 0
    jobs: int = 0
    fenced: int = 0
    measured_twice: int = 0
    lost: int = 0
    torn_ledger_lines: int = 0
    seconds: float = 0.0

    @property
    def is_right(self) -> bool:
        return self.measured_twice == 0 and self.lost == 0


class Crashing:
    """One site, crashed against until enough kills have hit."""

    def __init__(self, name: str, site: FakePbs | PrivateSlurm | None, root: Path, seed: int):
        self.site, self.root = site, root
        self.random = random.Random(seed)
        self.count = Count(name, seed)

    def run(self, kills: int) -> Count:
        begin = time.monotonic()
        while self.count.kills < kills:
            self._campaign(min(kills - self.count.kills, self.random.randint(2, 6)))
        self.count.seconds = round(time.monotonic() - begin, 1)
        return self.count

    def _campaign(self, kills: int) -> None:
        self.count.campaigns += 1
        work = self._project(self.count.campaigns)
        for number in range(kills):
            # a campaign begins with a verb that has a sweep
            self._crash(work, "run" if number == 0 else self.random.choice(VERBS))
        for _ in range(FINISHES):
            # on this machine submit leaves a harness in the background, which goes on when submit is killed
            processes.wait_until(lambda: not _is_driven(work), 120)
            if work.harness("run", "--no-report", timeout_s=300).returncode == 0:
                break
        self._add_up(work)

    def _project(self, number: int) -> Project:
        scheduler = self.count.site
        root = self.root / f"campaign {number}"
        description = cluster(scheduler, scheduler, root / "data", nodes=1)
        environment = dict(os.environ)
        if scheduler == "local":
            description["node"] = {"sockets": 1, "cores_per_socket": os.cpu_count(), "memory": "4gb"}
            description["queues"] = {}
            del description["queue"]
            # its own list of jobs: a crash campaign does not wait for what else runs on this machine
            environment["HARNESS_LOCAL_STATE"] = str(self.root / "state")
        elif self.site:
            environment = self.site.environment
        sweep = replay(self.random.choice([0.0, 0.3]), matrix={"workers": list(range(1, TASKS[scheduler] + 1))})
        return project(root / "project", description, sweep, environment, campaign=f"crash{number}")

    def _crash(self, work: Project, verb: str) -> None:
        if isinstance(self.site, FakePbs) and self.random.random() < 0.5:
            kind = self.random.choice(["late", "hang_after", "hang_before", "client_killed"])
            self.site.inject(kind, "qsub", seconds=self.random.uniform(0.1, 1.0), times=2)
        if isinstance(self.site, FakePbs) and self.random.random() < 0.5:
            how = self.random.choice(["first_only", "cut", "backslash", "nan"])
            self.site.inject("broken_json", "qstat", how=how, times=3)
        with work.spawn(verb) as harness:
            self._await_moment(work, harness)
            if harness.poll() is None:
                harness.kill()
                self.count.kills += 1
            else:
                self.count.too_late += 1
            assert harness.stdout is not None
            harness.stdout.close()

    def _await_moment(self, work: Project, harness: subprocess.Popen[str]) -> None:
        """Any time from the start of Python on; or, more often, within milliseconds of some line of the ledger."""
        if self.random.random() < 0.3:
            time.sleep(self.random.uniform(0.1, 3.0))
            return
        wanted = _lines(work.layout.ledger) + self.random.randint(1, 12)
        processes.wait_until(
            lambda: harness.poll() is not None or _lines(work.layout.ledger) >= wanted, 3.0, every_s=0.002
        )
        time.sleep(self.random.uniform(0.0, 0.04))

    def _add_up(self, work: Project) -> None:
        torn: list[int] = []
        list(read_json_lines(work.layout.ledger, torn))
        self._settle(work)
        measured, tasks = work.measured(), TASKS[self.count.site]
        self.count.torn_ledger_lines += len(torn)
        self.count.tasks += tasks
        self.count.lost += tasks - len(measured)
        self.count.measured_twice += sum(number > 1 for number in measured.values())
        self.count.attempts += len(list(work.layout.runs.glob("*/r*a*")))
        self.count.fenced += len(list(work.layout.runs.glob("*/r*a*/started/by-harness")))
        self.count.jobs += sum(self._jobs(work).values())

    def _settle(self, work: Project) -> None:
        """Wait for jobs of the campaign that nobody follows any more: they might still measure something twice."""
        if isinstance(self.site, FakePbs):
            site = self.site
            processes.wait_until(lambda: all(job["state"] in "FQ" for job in site.jobs().values()), 60)
        elif isinstance(self.site, PrivateSlurm):
            slurm = self.site
            processes.wait_until(lambda: not slurm.run("squeue", "-h").stdout.strip(), 60)

    def _jobs(self, work: Project) -> Counter[str]:
        """The site's jobs by name, as far as they belong to this campaign."""
        names = {status.job_name for status in work.statuses().values()}
        if isinstance(self.site, FakePbs):
            found = [job["name"] for job in self.site.jobs().values()]
        elif isinstance(self.site, PrivateSlurm):
            found = self.site.run("squeue", "-h", "-t", "all", "-o", "%j").stdout.split()
        else:
            found = [status.job_name for status in work.statuses().values() if status.job_id]
        return Counter(name for name in found if name in names)


def _is_driven(work: Project) -> bool:
    holder = read_holder(work.layout.lock)
    return holder is not None and is_alive(holder.process)


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@contextmanager
def _site(name: str) -> Iterator[FakePbs | PrivateSlurm | None]:
    if name == "pbs":
        with fake_pbs() as pbs:
            yield pbs
    elif name == "slurm":
        with private_slurm() as slurm:
            yield slurm
    else:
        yield None


def crash(name: str, site: Any, root: Path, kills: int, seed: int) -> Count:
    """Crash ``kills`` harnesses on a running site, below ``root``."""
    return Crashing(name, site, root, seed).run(kills)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", choices=["local", "pbs", "slurm"])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    with _site(chosen.site) as site, tempfile.TemporaryDirectory(prefix="crash-") as root:
        count = crash(chosen.site, site, Path(root), chosen.kills, chosen.seed)
    print(json.dumps(asdict(count)))
    return 0 if count.is_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
