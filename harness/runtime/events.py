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

from harness.errors import UserError
from harness.files import sealed_line, sync_directory
from harness.model.event import STEP_COLUMNS
from harness.runtime.interfaces import Clock

FLUSH_SECONDS = 1.0
FLUSH_STEPS = 1000


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

    What the rank has done is counted here, with the steps themselves, so that ``run_end`` and the steps agree
    however the run ends. Make it in the main thread.
    """

    def __init__(self, path: Path, clock: Clock):
        self._clock = clock
        self.origin_s = clock.now()
        self._lock = threading.RLock()
        self._columns: dict[str, list[Any]] = {name: [] for name in ("step", *STEP_COLUMNS)}
        self._loss: tuple[int, float] | None = None
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
            self._stream.write(line.encode())

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
        with self.deferral, self._lock:
            self._columns["step"].append(number)
            for name, value in zip(STEP_COLUMNS, row, strict=True):
                self._columns[name].append(round(value, 9) if isinstance(value, float) else value)
            self._loss = (number, loss)
            self._totals["steps"] += 1
            self._totals["fresh_images"] += self._columns["fresh"][-1]
            self._totals["consumed_images"] += self._columns["consumed"][-1]
            first = number == 0
            end_s = row[1] or 0.0
            if first or end_s - self._flushed_s >= FLUSH_SECONDS or len(self._columns["step"]) >= FLUSH_STEPS:
                self._flushed_s = end_s
                self.flush()

    def flush(self) -> None:
        """Write the steps gathered so far and the last loss among them."""
        with self.deferral, self._lock:
            if self._columns["step"]:
                columns, self._columns = self._columns, {name: [] for name in self._columns}
                self.note("steps", **columns)
            if self._loss is not None:
                (number, value), self._loss = self._loss, None
                self.note("loss", step=number, value=value)

    def error(self, error: BaseException) -> None:
        """The ``error`` event of an exception, with its traceback."""
        trace = "".join(traceback.format_exception(error))
        self.flush()
        self.note("error", type=type(error).__name__, message=str(error), traceback=trace)

    @property
    def steps(self) -> int:
        """Steps recorded so far."""
        return self._totals["steps"]

    def end(self, ok: bool) -> None:
        """The ``run_end`` event, on disk when this returns; whatever comes later is dropped."""
        with self.deferral, self._lock:
            if self._ended:
                return
            self.flush()
            self.note("run_end", ok=ok, **self._totals)
            self._ended = True
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
