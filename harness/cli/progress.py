"""Live progress of a campaign: a bar on a terminal, and everywhere one line for each run that has ended."""

from __future__ import annotations

import time
from collections.abc import Collection
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from harness.cli.labels import COLOURS, clock_text, label
from harness.cli.rate import rough_images_per_s
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign, Task
from harness.model.evidence import read_exit
from harness.model.job import JobState
from harness.model.ledger import AttemptKey, AttemptStatus


class RunProgress:
    """Shows the course of ``wanted`` tasks; :meth:`report` is called for every change of an attempt."""

    def __init__(self, console: Console, campaign: Campaign, layout: CampaignLayout, wanted: Collection[Task]):
        self._console, self._campaign, self._layout = console, campaign, layout
        self._wanted, self._total, self._done = frozenset(wanted), len(wanted), 0
        self._begin_s = time.monotonic()
        left = TextColumn("{task.fields[left]}")
        columns = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn(), left)
        self._bar = Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal, refresh_per_second=2
        )
        self._bar_task = self._bar.add_task("waiting", total=self._total, left="")

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(self, *_exc: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._bar.stop()

    def report(self, key: AttemptKey, status: AttemptStatus) -> None:
        if status.state is JobState.RUNNING:
            self._bar.update(self._bar_task, description=escape(label(self._campaign, key)))
        elif status.state.ended:
            task = Task(point_id=key.point_id, repeat=key.repeat)
            self._done += status.state is JobState.SUCCEEDED and task in self._wanted
            self._bar.update(self._bar_task, completed=self._done, left=self._left())
            self._console.print(self._line(key, status), soft_wrap=True)

    def _left(self) -> str:
        if not self._done:
            return ""
        each_s = (time.monotonic() - self._begin_s) / self._done
        return f"about {clock_text(each_s * max(0, self._total - self._done))} left"

    def _line(self, key: AttemptKey, status: AttemptStatus) -> str:
        counter = f"{self._done:>{len(str(self._total))}}/{self._total}"
        colour = COLOURS.get(status.state, "white")
        facts = self._facts(key) if status.state is JobState.SUCCEEDED else [status.reason]
        text = "; ".join([label(self._campaign, key), *filter(None, facts)])
        return f"[dim]{counter}[/] [{colour}]{status.state.value.lower().replace('_', ' ')}[/]  {escape(text)}"

    def _facts(self, key: AttemptKey) -> list[str]:
        paths, placement = self._layout.attempt(*key), self._campaign.points[key.point_id].placement
        record, rate = read_exit(paths.exit), rough_images_per_s(paths, placement.ranks)
        took = f"{record.ended_unix_s - record.started_unix_s:.1f} s" if record else ""
        return [took, f"about {rate:.4g} images/s" if rate else ""]
