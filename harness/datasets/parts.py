"""Long work in parts: in parallel processes, journaled so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from harness.files import Appender, read_json_lines

JOURNAL = "harness-parts.jsonl"
Progress = Callable[[int, int], None]
"""Called with (parts done, parts in all)."""

Part = TypeVar("Part")


class Produced(NamedTuple):
    """A file that a part made: its path relative to the set, size, MD5, and the samples in it where it is a shard."""

    file: str
    bytes: int
    md5: str
    samples: int = 0


@dataclass(frozen=True)
class Outcome:
    """All files of all parts, and the seconds that the workers spent on them, those of earlier runs included."""

    files: list[Produced]
    work_s: float


def store(root: Path, file: str, content: bytes) -> Produced:
    """Write ``content`` under ``root`` so that the file appears whole or not at all.

    Not synced one by one: over a million files that would cost hours; :func:`run_parts` syncs once per part.
    """
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(content)
    temporary.replace(path)
    return Produced(file, len(content), hashlib.md5(content, usedforsecurity=False).hexdigest())


@dataclass(frozen=True)
class _Timed(Generic[Part]):
    """A part's work together with the seconds it took; a class because it travels to worker processes."""

    work: Callable[[Part], list[Produced]]

    def __call__(self, part: Part) -> tuple[list[Produced], float]:
        started_s = time.monotonic()
        files = self.work(part)
        return files, time.monotonic() - started_s


def run_parts(
    root: Path,
    parts: Sequence[Part],
    work: Callable[[Part], list[Produced]],
    workers: int = 1,
    progress: Progress = lambda done, total: None,
) -> Outcome:
    """Do ``work`` on every part that the journal in ``root`` does not hold yet.

    ``work`` must be picklable and depend on its part alone, so that the result does not depend on ``workers``.
    """
    journal = root / JOURNAL
    done = {int(record["part"]): record for record in read_json_lines(journal) if _still_there(root, record)}
    todo = [number for number in range(len(parts)) if number not in done]
    progress(len(done), len(parts))
    with Appender(journal) as log:
        for number, (files, seconds) in _results(parts, todo, _Timed(work), workers):
            done[number] = {"part": number, "files": [list(file) for file in files], "seconds": seconds}
            log.append(done[number])
            progress(len(done), len(parts))
    os.sync()
    records = [done[number] for number in range(len(parts))]
    files = [Produced(*file) for record in records for file in record["files"]]
    return Outcome(files, sum(float(record["seconds"]) for record in records))


def forget_journal(root: Path) -> None:
    """Remove the journal, once a manifest says what it said."""
    (root / JOURNAL).unlink(missing_ok=True)


def _still_there(root: Path, record: dict[str, object]) -> bool:
    files = record.get("files")
    if not isinstance(files, list) or "part" not in record:
        return False
    made = [Produced(*file) for file in files]
    return all((root / file.file).is_file() and (root / file.file).stat().st_size == file.bytes for file in made)


def _results(
    parts: Sequence[Part], todo: list[int], work: _Timed[Part], workers: int
) -> Iterator[tuple[int, tuple[list[Produced], float]]]:
    if workers <= 1 or len(todo) <= 1:
        for number in todo:
            yield number, work(parts[number])
        return
    with pool(min(workers, len(todo))) as executor:
        with _uninterrupted():
            futures: dict[Future[tuple[list[Produced], float]], int] = {
                executor.submit(work, parts[number]): number for number in todo
            }
        for future in as_completed(futures):
            yield futures[future], future.result()


@contextmanager
def pool(workers: int) -> Iterator[Executor]:
    """Worker processes that leave Ctrl-C to their parent and die with it; what was not begun is dropped on an error."""
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_worker)
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the workers are started: one whose start is broken off ends in a traceback.

    The signal is blocked, which the workers inherit, so that Ctrl-C in a terminal never reaches them. It is also held
    back by a handler, because the kernel may deliver it through another thread, such as one of OpenBLAS's.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if held:
        signal.raise_signal(signal.SIGINT)


def _begin_worker() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_die_with, args=(parent,), daemon=True).start()


def _die_with(parent: multiprocessing.process.BaseProcess) -> None:
    """After kill -9 of the parent its workers would wait for work for ever."""
    parent.join()
    os._exit(1)


def usable_cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))
