"""``harness collect --logs``: logs of other programs → a table of published and honest rates."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.campaign_choice import need_packages
from harness.errors import UserError

if TYPE_CHECKING:
    from harness.analysis.foreign.table import LogTable


def collect_logs(globs: Sequence[str], pattern: str, facts: Sequence[str], output: Path | None, as_json: bool) -> None:
    """Read the logs, then print their table, or write it where ``output`` is given (``.csv`` or ``.parquet``)."""
    need_packages()
    from harness.analysis.foreign import patterns, table

    loaded = patterns.load(pattern)
    logs, given = table.paths(globs), dict(map(_fact, facts))
    with table.reading(logs, loaded, given) as pieces, _bar(len(logs)) as tell:
        found = table.table_of(pieces, tell)
    if not found.rows:
        raise UserError(
            f"none of {len(logs)} logs has a line that pattern {loaded.name} knows; "
            f"shipped patterns: {', '.join(patterns.shipped())}, or give your own file"
        )
    if output is not None:
        _write(found, output)
    if as_json:
        click.echo(found.frame().to_json(orient="records", indent=1, force_ascii=False))
    elif output is None:
        _print(found)
    else:
        click.echo(f"{len(found.rows)} configurations in {len(logs)} logs → {output}")


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None] | None]:
    """Shows on a terminal how many logs have been read; elsewhere nothing, and its library is not imported."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True, emoji=False), transient=True) as progress:
        task = progress.add_task("reading logs", total=total)
        yield lambda done: progress.update(task, completed=done)


def _fact(text: str) -> tuple[str, float | str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UserError(f"--fact {text!r}: write NAME=VALUE, such as batch_size=256")
    try:
        return name, float(value)
    except ValueError:
        return name, value


def _write(found: LogTable, path: Path) -> None:
    from harness.files import write_atomically

    buffer = io.BytesIO()
    if path.suffix == ".parquet":
        found.frame().to_parquet(buffer, index=False)
    elif path.suffix == ".csv":
        buffer.write(found.csv().encode())
    else:
        raise UserError(f"{path}: the name must end in .csv or .parquet")
    try:
        write_atomically(path, buffer.getvalue())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def _print(found: LogTable) -> None:
    from rich.console import Console

    from harness.report import foreign_grid, tables

    tables.print_grid(foreign_grid.logs_grid(found.frame()), Console(soft_wrap=False, emoji=False))
