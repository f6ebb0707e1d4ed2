"""The state of a campaign on the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.cli.labels import colour, label, word
from harness.cli.outcome import Latest, Outcome, show_next_steps, summary
from harness.cli.screen import Line, Screen, table_lines
from harness.jobs.lock import is_stale, read_holder
from harness.layout import CampaignLayout
from harness.model.job import JobState

if TYPE_CHECKING:
    from rich.text import Text

MOST_ROWS = 60
HEADERS = ("state", "run", "job", "reason")
#: what is copied from the table into a command
WHOLE = ("state", "job")
LIVE_ORDER = {JobState.RUNNING: 0, JobState.QUEUED: 2, JobState.INTENDED: 2, JobState.SUCCEEDED: 3}


def is_going_on(outcome: Outcome) -> bool:
    """Whether a job is under way, or a harness lives that will submit the rest."""
    return any(not status.state.ended for _, status in outcome.latest) or bool(driver_text(outcome.layout))


def driver_text(layout: CampaignLayout) -> str:
    """Who drives the campaign; empty where nobody does."""
    path = layout.lock
    holder = read_holder(path)
    return "" if holder is None or is_stale(path, holder) else f"driven by {holder}"


def show(outcome: Outcome, screen: Screen, show_all: bool) -> None:
    """The runs that need a look (all of them on demand), then what to do, then the counts."""
    rows = rows_of(outcome, show_all)
    if rows:
        shown = rows if show_all else rows[:MOST_ROWS]
        screen.table(HEADERS, _cells(outcome, shown), whole=WHOLE)
    if not show_all and len(rows) > MOST_ROWS:
        screen.say(f"… and {len(rows) - MOST_ROWS} more; --all lists them")
    show_next_steps(outcome, screen)
    screen.line(*summary(outcome))
    if text := driver_text(outcome.layout):
        screen.line((text, "dim"))


def watch(look: Callable[[], Outcome], screen: Screen, show_all: bool, interval_s: float) -> Outcome:
    """Look again until nothing goes on, with a live table on a terminal and a line for each change elsewhere."""
    from rich.console import Console
    from rich.live import Live

    outcome, said = look(), Line()
    console = Console(file=screen.stream, highlight=False, emoji=False)
    with Live(console=console, transient=True, auto_refresh=False) as live:
        while is_going_on(outcome):
            if screen.is_terminal:
                live.update(live_view(outcome, show_all, console.width, console.height), refresh=True)
            elif (line := summary(outcome)) != said:
                screen.line(*line)
                said = line
            time.sleep(interval_s)
            outcome = look()
    return outcome


def live_view(outcome: Outcome, show_all: bool, width: int, height: int) -> Text:
    """As much of the table as fits on a screen of ``height`` lines, what runs first, and the counts."""
    from rich.text import Text

    rows = sorted(rows_of(outcome, show_all), key=lambda run: LIVE_ORDER.get(run[1].state, 1))
    fitting = rows[: max(3, height - 5)]
    more: list[Line] = [[(f"… and {len(rows) - len(fitting)} more", "dim")]] if len(rows) > len(fitting) else []
    lines = [*table_lines(HEADERS, _cells(outcome, fitting), width, WHOLE), *more, summary(outcome)]
    shown = Text("\n").join(Text.assemble(*line) for line in lines)
    shown.no_wrap, shown.overflow = True, "ellipsis"
    return shown


def rows_of(outcome: Outcome, show_all: bool) -> list[Latest]:
    return [run for run in outcome.latest if show_all or run[1].state is not JobState.SUCCEEDED]


def _cells(outcome: Outcome, rows: list[Latest]) -> list[Line]:
    return [
        [
            (word(status.state), colour(status.state)),
            (label(outcome.campaign, key), ""),
            (status.job_id, "dim"),
            (status.reason, ""),
        ]
        for key, status in rows
    ]
