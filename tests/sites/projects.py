"""A project directory with one cluster and one sweep, and the harness run in it against a private site."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.files import read_json_lines
from harness.jobs.ledger import read_statuses
from harness.layout import CampaignLayout
from harness.model.ledger import AttemptKey, AttemptStatus
from sites import processes
from sites.clusters import write_project

TESTS = Path(__file__).parents[1]
QUICK = TESTS / "sites" / "quick_harness.py"


def replay(seconds: float = 0.0, **changes: Any) -> dict[str, Any]:
    """A sweep of two replay points, each lasting about ``seconds`` (0: no time at all)."""
    clock = {"clock": "real", "produce_s": 0.0, "consume_s": 0.05} if seconds else {"clock": "virtual"}
    return {
        "name": "replay",
        "base": {"workload": "replay", "options": clock},
        "matrix": {"workers": [1, 2]},
        "steps": {"warmup": 0, "timed": max(2, round(seconds / 0.05))},
        "walltime": "00:05:00",
        "memory": "1gb",
        **changes,
    }


def output_of(done: subprocess.CompletedProcess[str]) -> str:
    """All that a command said."""
    return f"{done.stdout}{done.stderr}"


class Spawned(subprocess.Popen[str]):
    """Ended, and not waited for, where the test has failed."""

    def __exit__(self, kind: type[BaseException] | None, value: Any, traceback: Any) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, value, traceback)


@dataclass
class Project:
    """``environment`` is the site's, so that its commands are found."""

    root: Path
    sweep: Path
    cluster: Path
    environment: Mapping[str, str]
    campaign: str = "c"

    @property
    def layout(self) -> CampaignLayout:
        return CampaignLayout(self.root / "results" / self.campaign)

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """The project where nobody looks for it meanwhile, as for a node that does not have its file system."""
        elsewhere = self.root.with_name("elsewhere")
        self.root.rename(elsewhere)
        try:
            yield
        finally:
            elsewhere.rename(self.root)

    def _argv(self, words: tuple[str, ...]) -> list[str]:
        verb, rest = words[0], words[1:]
        target = [str(self.sweep), "--cluster", str(self.cluster), "--campaign", self.campaign]
        if verb not in ("run", "submit", "plan"):
            target = [self.campaign]
        return [sys.executable, str(QUICK), verb, *target, *rest]

    def _options(self, more: Mapping[str, str]) -> dict[str, Any]:
        paths = {"PYTHONPATH": f"{TESTS.parent}:{TESTS}"}
        return {"cwd": self.root, "env": {**self.environment, **paths, **more}, "text": True}

    def harness(self, *words: str, timeout_s: float = 240, **more: str) -> subprocess.CompletedProcess[str]:
        """``harness VERB`` on this campaign, to its end."""
        argv = self._argv(words)
        return subprocess.run(argv, capture_output=True, timeout=timeout_s, check=False, **self._options(more))

    def spawn(self, *words: str, **more: str) -> Spawned:
        """``harness VERB`` begun, its output in a pipe."""
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return Spawned(self._argv(words), **streams, **self._options(more))

    # what came of it

    def statuses(self) -> dict[AttemptKey, AttemptStatus]:
        return read_statuses(self.layout.ledger)

    def states(self) -> list[str]:
        """The states of all attempts, sorted."""
        return sorted(status.state.value for status in self.statuses().values())

    def reasons(self) -> list[str]:
        return [status.reason for status in self.statuses().values()]

    def job_ids(self) -> list[str]:
        return [status.job_id for _, status in sorted(self.statuses().items()) if status.job_id]

    def wait_states(self, states: list[str], timeout_s: float = 90) -> None:
        reached = processes.wait_until(lambda: self.states() == states, timeout_s, every_s=0.1)
        assert reached, f"{self.states()} instead of {states}: {self.reasons()}"

    def measured(self) -> Counter[str]:
        """How many runs with whole evidence each task has: more than one is a task measured twice."""
        found: Counter[str] = Counter()
        for attempt in self.layout.runs.glob("*/r*a*"):
            events = list(read_json_lines(attempt / "events.r0.jsonl"))
            begun = sum(record["event"] == "run_start" for record in events)
            ended = sum(record["event"] == "run_end" for record in events)
            assert begun <= 1, f"{attempt} was run {begun} times"
            if (
                ended
                and (attempt / "exit.json").exists()
                and json.loads((attempt / "exit.json").read_text())["code"] == 0
            ):
                found[f"{attempt.parent.name}/{attempt.name.partition('a')[0]}"] += 1
        return found


def project(
    root: Path,
    cluster: Mapping[str, Any],
    sweep: Mapping[str, Any],
    environment: Mapping[str, str],
    campaign: str = "c",
) -> Project:
    sweep_file, cluster_file = write_project(root, cluster, sweep)
    return Project(root, sweep_file, cluster_file, environment, campaign)
