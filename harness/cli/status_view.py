"""The state of a campaign on the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from harness.cli.labels import COLOURS, label
from harness.cli.outcome import Latest, Outcome, show_next_steps, summary
from harness.jobs.lock import is_stale, read_holder
from harness.layout import CampaignLayout
from harness.model.job import JobState

MOST_ROWS = 60
LIVE_ORDER = {JobState.RUNNING: 0, JobState.QUEUED: 2, JobState.INTENDED: 2, JobState.SUCCEEDED: 3}


def is_going_on(outcome: Outcome) -> bool:
    """Whether a job is under way, or a harness lives that will submit the rest."""
    return any(not status.state.ended for _, status in outcome.latest) or bool(driver_text(outcome.layout))


def driver_text(layout: CampaignLayout) -> str:
    """Who drives the campaign; empty where nobody does."""
    path = layout.lock
    holder = read_holder(path)
    return "" if holder is None or is_stale(path, holder) else f"driven by {holder}"


def show(outcome: Outcome, console: Console, show_all: bool) -> None:
    """The runs that need a look (all of them on demand), then what to do, then the counts."""
    rows = rows_of(outcome, show_all)
    if rows:
        console.print(_table(outcome, rows if show_all else rows[:MOST_ROWS]))
    if not show_all and len(rows) > MOST_ROWS:
        console.print(f"… and {len(rows) - MOST_ROWS} more; --all lists them")
    show_next_steps(outcome, console)
    console.print(summary(outcome), soft_wrap=True)
    if text := driver_text(outcome.layout):
        console.print(text, style="dim", markup=False, soft_wrap=True)


def watch(look: Callable[[], Outcome], console: Console, show_all: bool, interval_s: float) -> Outcome:
    """Look again until nothing goes on, with a live table on a terminal and a line for each change elsewhere."""
    from rich.live import Live

    outcome, said = look(), ""
    with Live(console=console, transient=True, auto_refresh=False) as live:
        while is_going_on(outcome):
            if console.is_terminal:
                live.update(live_view(outcome, show_all, console.height), refresh=True)
            elif (text := summary(outcome)) != said:
                console.print(text, soft_wrap=True)
                said = text
            time.sleep(interval_s)
            outcome = look()
    return outcome


def live_view(outcome: Outcome, show_all: bool, height: int) -> Group:
    """As much of the table as fits on a screen of ``height`` lines, what runs first, and the counts."""
    rows = sorted(rows_of(outcome, show_all), key=lambda run: LIVE_ORDER.get(run[1].state, 1))
    fitting = rows[: max(3, height - 5)]
    more = [Text(f"… and {len(rows) - len(fitting)} more", style="dim")] if len(rows) > len(fitting) else []
    return Group(_table(outcome, fitting), *more, Text.from_markup(summary(outcome), overflow="ellipsis"))


def rows_of(outcome: Outcome, show_all: bool) -> list[Latest]:
    return [run for run in outcome.latest if show_all or run[1].state is not JobState.SUCCEEDED]


def _table(outcome: Outcome, rows: list[Latest]) -> Table:
    table = Table(header_style="bold")
    table.add_column("state", no_wrap=True)
    table.add_column("run")
    table.add_column("job", style="dim", no_wrap=True)
    table.add_column("reason")
    for key, status in rows:
        state = f"[{COLOURS.get(status.state, 'cyan')}]{status.state.value.lower().replace('_', ' ')}[/]"
        table.add_row(state, escape(label(outcome.campaign, key)), escape(status.job_id), escape(status.reason))
    return table
