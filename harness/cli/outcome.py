"""How a campaign stands when a verb leaves it: what succeeded, what did not and why, and what to do next."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from harness.cli.campaign_options import handle
from harness.cli.labels import COLOURS, label
from harness.files import open_file
from harness.jobs.campaign import scheduler_name
from harness.jobs.causes import cause_of, next_step
from harness.jobs.moved import old_place
from harness.jobs.tasks import Statuses, attempts_of
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign, Task
from harness.model.job import JobState
from harness.model.ledger import AttemptKey, AttemptStatus

SHOWN_FAILURES = 5
LAST_LINES = 5
_TAIL_BYTES = 8192

Latest = tuple[AttemptKey, AttemptStatus]


@dataclass
class Outcome:
    """``latest`` holds the deciding attempt of each task: one that succeeded, else the last; tasks never tried are
    counted in ``untried``. ``interrupted`` is the signal's exit code 130, or 0; ``damaged``: lines of the ledger."""

    campaign: Campaign
    layout: CampaignLayout
    latest: list[Latest]
    untried: int
    scheduler: str = ""
    interrupted: int = 0
    files: list[Path] = field(default_factory=list)
    damaged: Sequence[int] = ()

    @property
    def counts(self) -> Counter[JobState]:
        return Counter(status.state for _, status in self.latest)

    @property
    def bad(self) -> list[Latest]:
        return [(k, s) for k, s in self.latest if s.state.ended and s.state is not JobState.SUCCEEDED]

    @property
    def exit_code(self) -> int:
        return self.interrupted or (1 if self.bad else 0)

    def as_json(self) -> dict[str, Any]:
        return {
            "campaign": self.campaign.name,
            "directory": str(self.layout.root),
            "moved_from": self.moved_from(),
            "states": {state.value: count for state, count in self.counts.items()},
            "untried": self.untried,
            "runs": [self._run(key, status) for key, status in self.latest],
            "files": [str(path) for path in self.files],
            "damaged_ledger_lines": list(self.damaged),
        }

    def _run(self, key: AttemptKey, status: AttemptStatus) -> dict[str, Any]:
        directory = str(self.layout.attempt(*key).root)
        facts = {"state": status.state.value, "reason": status.reason, "job_id": status.job_id, "directory": directory}
        advice = {"cause": cause_of(status), "next_step": next_step(status, self.scheduler, handle(self.layout))}
        return {**key._asdict(), "label": label(self.campaign, key), **facts, **advice}

    def next_steps(self) -> list[str]:
        """One line for each cause among the runs that need a look, the most frequent first."""
        causes = Counter(cause for _, status in self.latest if (cause := cause_of(status)))
        first = {cause_of(status): status for _, status in reversed(self.latest)}
        return [
            *self._moved(),
            *(
                f"{count} {cause.replace('_', ' ')}: {next_step(first[cause], self.scheduler, handle(self.layout))}"
                for cause, count in causes.most_common()
            ),
        ]

    def _moved(self) -> list[str]:
        old = self.moved_from()
        if old is None:
            return []
        name = handle(self.layout)
        return [
            f"moved: jobs were written to look for their runs in {old}, and the campaign lies in "
            f"{self.layout.root} now; move it back while they are under way, or harness cancel {name}, then "
            f"harness retry {name}"
        ]

    def moved_from(self) -> str | None:
        """The campaign's directory as its jobs know it, where they look for it in vain: those under way fail, and those
        lost may have. None where no job does."""
        for key, status in self.latest:
            paths = self.layout.attempt(*key)
            if (status.state.ended and status.state is not JobState.LOST) or paths.exit.exists():
                continue
            old = old_place(paths)
            if old is None:
                return None
            for _ in paths.root.relative_to(self.layout.root).parts:
                old = os.path.dirname(old)  # noqa: PTH120 - text of a script, which may be no path at all
            return old
        return None


def outcome_of(
    campaign: Campaign, layout: CampaignLayout, tasks: Sequence[Task], statuses: Statuses, damaged: Sequence[int] = ()
) -> Outcome:
    """``damaged``: numbers of the ledger's lines that are no records."""
    attempts = attempts_of(tasks, statuses)
    latest = [deciding(attempts[task]) for task in tasks if attempts[task]]
    untried, scheduler = len(tasks) - len(latest), scheduler_name(layout.cluster)
    return Outcome(campaign, layout, latest, untried, scheduler, damaged=damaged)


def deciding(attempts: Sequence[Latest]) -> Latest:
    """The last attempt that succeeded, else the last one."""
    succeeded = [attempt for attempt in attempts if attempt[1].state is JobState.SUCCEEDED]
    return (succeeded or list(attempts))[-1]


def finish(outcome: Outcome, console: Console, as_json: bool) -> int:
    """Say how it ended, as text and where asked as JSON on stdout; returns the exit code that says so too."""
    show(outcome, console)
    if as_json:
        print(json.dumps(outcome.as_json(), ensure_ascii=False))
    return outcome.exit_code


def show(outcome: Outcome, console: Console) -> None:
    """The failures with their last words, then the counts."""
    bad = [] if outcome.interrupted else outcome.bad
    for key, status in bad[:SHOWN_FAILURES]:
        _show_failure(outcome, key, status, console)
    if len(bad) > SHOWN_FAILURES:
        console.print(
            f"… and {len(bad) - SHOWN_FAILURES} more; see `harness status {handle(outcome.layout)}`",
            markup=False,
            soft_wrap=True,
        )
    show_next_steps(outcome, console)
    console.print(summary(outcome), soft_wrap=True)


def show_next_steps(outcome: Outcome, console: Console) -> None:
    for line in [] if outcome.interrupted else outcome.next_steps():
        console.print(f"next  {line}", style="bold", markup=False, soft_wrap=True)


def summary(outcome: Outcome) -> str:
    """Counts by state, with markup, and where the evidence lies."""
    words = [
        f"[{COLOURS.get(state, 'cyan')}]{count} {state.value.lower().replace('_', ' ')}[/]"
        for state, count in sorted(outcome.counts.items(), key=lambda item: list(JobState).index(item[0]))
    ]
    words += [f"{outcome.untried} not tried"] if outcome.untried else []
    counts = ", ".join(words) or "no runs"
    return f"{escape(outcome.campaign.name)}: {counts}; evidence in {escape(str(outcome.layout.root))}"


def _show_failure(outcome: Outcome, key: AttemptKey, status: AttemptStatus, console: Console) -> None:
    paths = outcome.layout.attempt(*key)
    word, colour = status.state.value.lower().replace("_", " "), COLOURS.get(status.state, "red")
    reason = escape(f"{label(outcome.campaign, key)}: {status.reason}")
    console.print(f"[{colour}]{word}[/]  {reason}", soft_wrap=True)
    if status.state is JobState.CANCELLED:
        return  # what mpirun says when it is told to stop explains nothing
    for line in last_lines(paths.stderr):
        console.print(f"    {line}", style="dim", markup=False, soft_wrap=True)
    console.print(f"    log: {paths.stderr}", style="dim", markup=False, soft_wrap=True)


def last_lines(path: Path, count: int = LAST_LINES) -> list[str]:
    """The last lines of a log that say something."""
    try:
        with os.fdopen(open_file(path), "rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _TAIL_BYTES))
            text = stream.read().decode(errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-count:]
