"""A campaign's attempts in pieces, which several processes may read at once."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import chain
from multiprocessing import forkserver
from typing import Any, NamedTuple

import pyarrow as pa

from harness.analysis import arrow, processes
from harness.analysis.campaigns import Attempt
from harness.model.campaign import PlannedPoint

Planned = Mapping[str, PlannedPoint]

#: Starting a process costs as much as reading some thousand attempts.
PARALLEL_FROM = 1500
MOST_WORKERS = 8
#: A piece holds at most so many attempts, and about so many bytes of evidence.
PIECE_ATTEMPTS = 128
PIECE_BYTES = 1 << 23


@dataclass(frozen=True)
class Piece:
    """Attempts that follow each other: their rows, their steps, and how many steps each of them has.

    ``described``: whether each has a usable ``point.json``; where not, its row holds what was planned.
    """

    rows: pa.Table
    steps: pa.Table
    counts: tuple[int, ...]
    described: tuple[bool, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        """On its way from one process to another."""
        tables = arrow.to_bytes(self.rows), arrow.to_bytes(self.steps)
        return _arrived, (*tables, self.counts, self.described)


def _arrived(rows: bytes, steps: bytes, counts: tuple[int, ...], described: tuple[bool, ...]) -> Piece:
    return Piece(arrow.from_bytes(rows), arrow.from_bytes(steps), counts, described)


class Kept(NamedTuple):
    """Attempts whose rows and steps the last collection has: the place of the first, and how many."""

    place: int
    attempts: int


def prepare(attempts: int) -> None:
    """Let the workers' imports begin, where so many attempts to read are expected: it takes as long as finding them."""
    if attempts >= PARALLEL_FROM:
        _prepared()
        forkserver.ensure_running()


def pieces_of(chosen: Iterable[tuple[Attempt, int]]) -> Iterator[list[Attempt]]:
    """Attempts, each with the bytes of its evidence, cut into pieces."""
    piece: list[Attempt] = []
    size = 0
    for attempt, more in chosen:
        if piece and (len(piece) == PIECE_ATTEMPTS or size + more > PIECE_BYTES):
            yield piece
            piece, size = [], 0
        piece.append(attempt)
        size += more
    if piece:
        yield piece


def read_pieces(name: str, planned: Planned, pieces: Iterator[list[Attempt] | Kept]) -> Iterator[Piece | Kept]:
    """Every piece read, and what is kept handed on, in order; by several processes where there is much to read."""
    workers = min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    first: list[list[Attempt] | Kept] = []
    attempts = 0
    for piece in pieces:
        first.append(piece)
        attempts += 0 if isinstance(piece, Kept) else len(piece)
        if attempts >= PARALLEL_FROM and workers > 1:
            yield from _read_by_several(name, planned, chain(first, pieces), workers)
            return
    for piece in first:
        yield piece if isinstance(piece, Kept) else _read(name, piece, planned)


def _read_by_several(
    name: str, planned: Planned, pieces: Iterable[list[Attempt] | Kept], workers: int
) -> Iterator[Piece | Kept]:
    with processes.pool(workers, _prepared()) as pool:
        ahead: deque[tuple[list[Attempt], Future[Piece]] | Kept] = deque()
        for piece in pieces:
            ahead.append(piece if isinstance(piece, Kept) else (piece, pool.submit(_read, name, piece)))
            # what waits to be taken is bounded, however many pieces there are
            if len(ahead) > 3 * workers:
                yield _taken(name, planned, ahead.popleft())
        while ahead:
            yield _taken(name, planned, ahead.popleft())


def _taken(name: str, planned: Planned, asked: tuple[list[Attempt], Future[Piece]] | Kept) -> Piece | Kept:
    if isinstance(asked, Kept):
        return asked
    attempts, piece = asked[0], asked[1].result()
    # the plan is long, and few need it: it is not sent to other processes
    return piece if all(piece.described) else _read(name, attempts, planned)


def _read(name: str, attempts: Sequence[Attempt], planned: Planned | None = None) -> Piece:
    """As :func:`harness.analysis.reading.read_piece`, which a process that only asks others need not import."""
    from harness.analysis.reading import read_piece

    return read_piece(name, attempts, planned)


def _prepared() -> Any:
    """Processes forked from one that has imported what they need, and nothing else happened in it.

    This process may have threads, which a fork of it would find stopped in the middle of anything; processes that begin
    from nothing would each import for as long as it takes to read a thousand attempts.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["harness.analysis.reading"])
    return context
