"""The writer of a rank's evidence: ``events.r<rank>.jsonl``, kinds and columns as in :mod:`harness.model.event`.

Steps are gathered in memory and written in batches, so that a step costs some list appends; a crash loses at most
the last :data:`FLUSH_SECONDS` of steps and may leave a torn last line, which readers skip.
"""

from __future__ import annotations

import math
import os
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import HarnessError, UserError
from harness.files import sealed_line, sync_directory, write_whole
from harness.model.event import STEP_COLUMNS
from harness.runtime.interfaces import Clock

FLUSH_SECONDS = 1.0
FLUSH_STEPS = 1000


class EvidenceError(HarnessError):
    """What was measured cannot be written down, so the run is no success."""


class Deferral:
    """Keeps a signal from cutting a record: inside the block, an exception for the main thread waits for its end."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._depth = 0
        self._waiting: BaseException | None = None

    def __enter__(self) -> None:
        if threading.get_ident() == self._thread:
            self._depth += 1

    def __exit__(self, *_exc: object) -> None:
        if threading.get_ident() == self._thread:
            self._depth -= 1
            if self._waiting is not None and not self._depth:
                waiting, self._waiting = self._waiting, None
                raise waiting

    def throw(self, error: BaseException) -> None:
        """Raise ``error`` in the main thread, which calls this from a signal handler: now or when the block ends."""
        if not self._depth:
            raise error
        self._waiting = error


class EventWriter:
    """Writes events in order; safe to call from several threads. Times are seconds since this writer was made.

    What the rank has done is counted here, as the steps are written, so that ``run_end`` and the steps agree
    however the run ends. Make it in the main thread.
    """

    def __init__(self, path: Path, clock: Clock):
        self._path, self._clock = path, clock
        self.origin_s = clock.now()
        self._lock = threading.RLock()
        self._rows: list[tuple[Any, ...]] = []
        self._flushed_s = 0.0
        self._ended = False
        self._totals = {"steps": 0, "fresh_images": 0, "consumed_images": 0}
        self.deferral = Deferral()
        self.kinds: set[str] = set()
        try:
            self._stream = path.open("xb", buffering=0)
        except FileExistsError:
            raise UserError(f"{path} exists: this attempt has run already; start a new attempt") from None
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}; evidence needs a writable directory") from None
        sync_directory(path.parent)

    def now(self) -> float:
        """Seconds since the writer was made, on the rank's clock."""
        return self._clock.now() - self.origin_s

    def note(self, kind: str, **fields: Any) -> None:
        """Write one event at once. Numbers that JSON lacks (NaN, infinity) become null."""
        record = {"event": kind, "t_s": round(self.now(), 9), **fields}
        with self.deferral, self._lock:
            if self._ended:
                return
            self.kinds.add(kind)
            try:
                line = sealed_line(record)
            except ValueError:
                line = sealed_line(_finite(record))
            with self._writing():
                write_whole(self._stream, line.encode())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise EvidenceError(f"{self._path} cannot be written: {error.strerror}; a run needs its evidence") from None

    def finding(self, code: str, evidence: Mapping[str, Any], advice: str) -> None:
        """A typed warning: a stable code, what was seen, what to do."""
        self.note("finding", code=code, evidence=dict(evidence), advice=advice)

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """A ``phase`` event over the block, written also when the block fails."""
        begin_s = self.now()
        try:
            yield
        finally:
            self.note("phase", name=name, begin_s=round(begin_s, 9), end_s=round(self.now(), 9))

    def step(self, number: int, row: Sequence[float | int | None], loss: float) -> None:
        """Gather one step: ``row`` holds the values of :data:`STEP_COLUMNS`, times on this writer's scale."""
        # nothing but this stands between two steps: appending is whole for signals and other threads as it is
        self._rows.append((number, *row, loss))
        end_s = row[1] or 0.0
        if end_s - self._flushed_s >= FLUSH_SECONDS or len(self._rows) >= FLUSH_STEPS or number == 0:
            self._flushed_s = end_s
            self.flush()

    def flush(self) -> None:
        """Write the steps gathered so far and the last loss among them."""
        with self.deferral, self._lock:
            rows = self._rows[:]
            if not rows:
                return
            del self._rows[: len(rows)]  # one that the main thread adds meanwhile stays
            number, *columns, loss = zip(*rows, strict=True)
            named = dict(zip(STEP_COLUMNS, map(_compact, columns), strict=True))
            self._totals["steps"] += len(rows)
            self._totals["fresh_images"] += sum(named["fresh"])
            self._totals["consumed_images"] += sum(named["consumed"])
            self.note("steps", step=number, **named)
            self.note("loss", step=number[-1], value=loss[-1])

    def error(self, error: BaseException) -> None:
        """The ``error`` event of an exception, with its traceback."""
        trace = "".join(traceback.format_exception(error))
        self.flush()
        self.note("error", type=type(error).__name__, message=str(error), traceback=trace)

    @property
    def steps(self) -> int:
        """Steps recorded so far."""
        return self._totals["steps"] + len(self._rows)

    def end(self, ok: bool) -> None:
        """The ``run_end`` event, on disk when this returns; whatever comes later is dropped."""
        with self.deferral, self._lock:
            if self._ended:
                return
            self.flush()
            self.note("run_end", ok=ok, **self._totals)
            self._ended = True
            with self._writing():
                os.fsync(self._stream.fileno())
            self._stream.close()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _compact(values: Sequence[Any]) -> Sequence[Any]:
    """Times in whole nanoseconds, as seconds: what JSON writes of them is short. Counts as they are."""
    return [round(value * 1e9) / 1e9 for value in values] if isinstance(values[0], float) else values
