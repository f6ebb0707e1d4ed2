"""Evidence of a campaign → one tidy table, a row per attempt; written as CSV and Parquet, each replaced at once."""

from __future__ import annotations

import gc
import io
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.analysis import arrow, incremental
from harness.analysis.campaigns import Attempt, attempts, extra_canaries, load_campaign
from harness.analysis.incremental import Look, Previous
from harness.analysis.pieces import Kept, Piece, pieces_of, prepare, read_pieces
from harness.analysis.rows_table import SCHEMA, csv_text, rows_table, to_frame
from harness.analysis.steps_table import StepsWriter
from harness.files import write_atomically
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.model.job import JobState

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int], None]


def collect(layout: CampaignLayout, progress: Progress | None = None) -> pd.DataFrame:
    """As :func:`collect_rows`, with the runs as pandas has them."""
    return to_frame(collect_rows(layout, progress))


def collect_rows(layout: CampaignLayout, progress: Progress | None = None, damage: list[str] | None = None) -> pa.Table:
    """Read a campaign's evidence; write ``runs.csv``, ``runs.parquet`` and ``steps.parquet``; return the runs.

    Attempts whose evidence has not changed since the last collection are taken from its tables.

    Args:
        progress: called with (attempts read, attempts in all) now and then.
        damage: where given, what belongs to no run and could not be read is added to it, a sentence each.

    Raises:
        UserError: where ``layout`` holds no campaign.
        OSError: where its ledger cannot be read.

    Where its directory cannot be written, as another user's, the table is made all the same, and not kept.
    """
    previous = Previous(layout)
    try:
        with _without_search_for_circles():
            if previous.unchanged():
                return previous.rows
            return _collect(layout, previous, progress or (lambda *_: None), [] if damage is None else damage)
    finally:
        previous.close()


@contextmanager
def _without_search_for_circles() -> Iterator[None]:
    """Python looks for circles of objects whenever there are many new ones: a tenth of the time, and there are none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True)
class _Found:
    """An attempt, its directory before it was read, and its place in the last collection where nothing has changed."""

    attempt: Attempt
    look: Look
    place: int | None


def _collect(layout: CampaignLayout, previous: Previous, progress: Progress, damage: list[str]) -> pa.Table:
    campaign = load_campaign(layout)
    prepare(0 if previous.known else len(campaign.tasks))
    # before any file is read: what is written meanwhile is seen the next time
    inputs = incremental.inputs(layout)
    tried = attempts(layout, damage)
    names = incremental.names_of(layout, tried)
    # with damage there is no collection to come in which nothing has changed: it is told every time
    directories = incremental.UNSETTLED if damage else incremental.directories(layout, names)
    looks: list[Look] = []
    keep = os.access(layout.root, os.W_OK)
    if keep:
        layout.collected.unlink(missing_ok=True)
    rows: list[pa.Table] = [rows_table([])]
    counts: list[int] = []
    described: list[bool] = []
    with StepsWriter(layout.steps_parquet) if keep else nullcontext() as steps:
        for part in _parts(campaign, _looked_at(tried, names, previous, looks), previous):
            rows.append(part.rows)
            counts += part.counts
            described += part.described
            for table in part.steps:
                if steps is not None:
                    steps.write(table)
            progress(len(counts), len(tried))
    table = mark_attempts(pa.concat_tables(rows), extra_canaries(layout, campaign))
    if not keep:
        return table
    write(table, layout)
    seen = list(zip(names, map(incremental.told, tried), looks, counts, described, strict=True))
    incremental.remember(layout, inputs, directories, seen)
    return table


def _looked_at(
    tried: Iterable[Attempt], names: Iterable[str], previous: Previous, looks: list[Look]
) -> Iterator[_Found]:
    """Each attempt when it is asked for, its directory added to ``looks``."""
    for attempt, name in zip(tried, names, strict=True):
        now = incremental.look(attempt)
        looks.append(now)
        yield _Found(attempt, now, previous.place(name, attempt, now))


@dataclass(frozen=True)
class _Part:
    """Attempts that follow each other, all of them read now or all of them taken from the last collection."""

    rows: pa.Table
    steps: Iterable[pa.Table]
    counts: Collection[int]
    described: Collection[bool]


def _parts(campaign: Campaign, found: Iterator[_Found], previous: Previous) -> Iterator[_Part]:
    """The attempts' rows and steps, in their order; attempts are looked at while others are read."""
    for piece in read_pieces(campaign.name, campaign.points, _cut(found)):
        if isinstance(piece, Piece):
            yield _Part(piece.rows, [piece.steps], piece.counts, piece.described)
        else:
            counts = previous.counts(*piece)
            steps = previous.steps(*piece)
            yield _Part(previous.rows.slice(*piece), steps, counts, [True] * len(counts))


def _cut(found: Iterator[_Found]) -> Iterator[list[Attempt] | Kept]:
    """Pieces to be read, and between them the first place and the number of those to be taken over."""
    for _, run in groupby(enumerate(found), lambda item: _neighbours(*item)):
        number, first = next(run)
        if first.place is None:
            yield from pieces_of((one.attempt, one.look.bytes) for _, one in chain([(number, first)], run))
        else:
            yield Kept(first.place, 1 + sum(1 for _ in run))


def _neighbours(number: int, found: _Found) -> int | None:
    """The same for attempts that also followed each other in the last collection; None for those to be read."""
    return None if found.place is None else found.place - number


def mark_attempts(table: pa.Table, canaries: Collection[tuple[str, int]] = ()) -> pa.Table:
    """Fills ``latest`` (no later attempt) and ``counts`` (the newest success of its repeat, else the newest).

    Args:
        canaries: (point, repeat) of runs beyond the sweep's, which tell of a node's drift and count for no point.
    """
    names = ("point_id", "repeat", "attempt", "state")
    rows = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    newest: dict[tuple[str, int], int] = {}
    done: dict[tuple[str, int], int] = {}
    for point_id, repeat, attempt, state in rows:
        task = point_id, repeat
        newest[task] = max(attempt, newest.get(task, attempt))
        if state == JobState.SUCCEEDED.value:
            done[task] = max(attempt, done.get(task, attempt))
    latest, counts = [], []
    for point_id, repeat, attempt, _ in rows:
        task = point_id, repeat
        latest.append(attempt == newest[task])
        counts.append(attempt == done.get(task, newest[task]) and task not in canaries)
    for name, values in (("latest", latest), ("counts", counts)):
        table = table.set_column(SCHEMA.get_field_index(name), SCHEMA.field(name), arrow.truths(values))
    return table


def as_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a table with exactly the columns of the data dictionary, typed; unknown cells are NA."""
    return to_frame(rows_table(list(rows)))


def write(table: pa.Table, layout: CampaignLayout) -> None:
    """Write ``runs.csv`` and ``runs.parquet``; readers see the old files or the new ones, never half of either."""
    write_atomically(layout.runs_csv, csv_text(table))
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    write_atomically(layout.runs_parquet, buffer.getvalue())
