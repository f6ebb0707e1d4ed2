"""Progress of long work on data: a bar on a terminal, a line now and then elsewhere; both on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

_LINE_EVERY_S = 10.0
Report = Callable[[int, int], None]
"""Called with (done, total)."""


@contextmanager
def bar(title: str, resumable: bool = True) -> Iterator[Report]:
    """A function to report progress to; Ctrl-C says that nothing done is lost."""
    console = Console(stderr=True, emoji=False)
    try:
        if console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
            with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
                task = progress.add_task(title, total=None)
                yield lambda done, total: progress.update(task, completed=done, total=total)
        else:
            yield _lines(title)
    except KeyboardInterrupt:
        if resumable:
            click.echo("what is done is kept: the same command goes on from here", err=True)
        raise


def _lines(title: str) -> Report:
    last_s = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal last_s
        if total and time.monotonic() - last_s > _LINE_EVERY_S:
            last_s = time.monotonic()
            click.echo(f"{title}: {done / total:.0%}", err=True)

    return report
