"""How fast a directory's file system is: one large file, many small files, metadata; bounded in time and bytes.

The three kinds of work fail separately: a parallel file system may stream gigabytes a second and still open only a
few hundred files in one. Every part says where its bytes came from, since a page cache is no storage.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.runtime.storage import drop_cached, only_page_cache, resident

_BLOCK_BYTES = 1 << 20
_CACHED_SHARE = 0.99
_UNCACHED_SHARE = 0.01
#: errors of a directory that cannot be written, as opposed to one that is broken
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class Limits:
    """Bounds of a probe. ``part_s`` bounds each of its parts, which end after the operation in progress.

    ``small_file_bytes`` is near the mean size of ImageNet's JPEG files, 110 kB.
    """

    part_s: float = 2.0
    large_file_bytes: int = 256 << 20
    small_files: int = 500
    small_file_bytes: int = 110_000
    empty_files: int = 500


@dataclass(frozen=True)
class _Probe:
    limits: Limits
    now: Callable[[], float]

    def timed(self, work: Iterator[int]) -> tuple[int, int, float]:
        """(operations, bytes, seconds) of ``work``, which yields each operation's bytes, within ``part_s``."""
        start = self.now()
        operations = size = 0
        for count in work:
            operations, size = operations + 1, size + count
            if self.now() - start >= self.limits.part_s:
                break
        return operations, size, self.now() - start


def probe(
    directory: Path, limits: Limits | None = None, now: Callable[[], float] = time.perf_counter
) -> dict[str, Any]:
    """Write, read and delete files of the probe's own in a temporary sub-directory, which is gone afterwards.

    Returns:
        ``write``, ``sequential_read``, ``small_files`` (read in random order) and ``metadata`` (create, stat and
        delete empty files): a dict each, with operations, bytes, seconds and rates, and ``cache`` for what was read:
        ``cold`` (from storage, or from caches beyond this node), ``warm`` (this node's page cache) or ``unknown``.

    Raises:
        OSError: the directory is missing, cannot be written, or is full.
    """
    task = _Probe(limits or Limits(), now)
    with _scratch(directory) as place:
        large = place / "large"
        results = {"write": _write(task, large), "sequential_read": _sequential(task, [large])}
        large.unlink()
        smalls = _make_small(task, place)
        results["small_files"] = _random_files(task, smalls)
        results["metadata"] = _metadata(task, place)
    return results


def probe_existing(
    directory: Path, limits: Limits | None = None, now: Callable[[], float] = time.perf_counter
) -> dict[str, Any]:
    """Read files that already lie in a directory, such as a data set's; nothing is written.

    The largest file found is read in sequence, others whole and in random order. What earlier users left in the page
    cache is dropped first where that is permitted; ``cache`` says what came of it. At most ``small_files`` files are
    looked at, and the search itself is bounded by ``part_s``.

    Raises:
        OSError: the directory or a file in it cannot be read.
    """
    task = _Probe(limits or Limits(), now)
    start = now()
    listed = list(_listed(task, directory))
    listing_s = now() - start
    by_size = sorted(listed, key=lambda file: file.stat().st_size)
    results: dict[str, Any] = {"listing": _rates("files", len(listed), 0, listing_s)}
    if by_size:
        results["sequential_read"] = _sequential(task, by_size[-1:])
        results["small_files"] = _random_files(task, by_size[:-1] or by_size)
    return results


def is_writable(directory: Path) -> bool:
    """Whether a file can be made there: asked of the file system itself, since access(2) does not know quotas,
    root squashing or read-only mounts of network file systems.

    Raises:
        OSError: for anything but a refusal to write, such as a full disk (ENOSPC) or quota (EDQUOT).
    """
    try:
        with tempfile.TemporaryFile(dir=directory) as stream:
            stream.write(b"\0" * 4096)
            os.fsync(stream.fileno())
    except OSError as error:
        if error.errno in _READ_ONLY:
            return False
        raise
    return True


@contextmanager
def _scratch(directory: Path) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix=".harness-probe-", dir=directory))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _write(task: _Probe, path: Path) -> dict[str, Any]:
    """One file, until it is on the disk or the server: fsync is part of the time."""
    block = os.urandom(_BLOCK_BYTES)  # not zeros: some file systems compress
    start = task.now()
    with path.open("wb", buffering=0) as stream:

        def blocks() -> Iterator[int]:
            for _ in range(task.limits.large_file_bytes // _BLOCK_BYTES):
                stream.write(block)
                yield _BLOCK_BYTES

        _, size, _ = task.timed(blocks())
        os.fsync(stream.fileno())
    return _rates("blocks", size // _BLOCK_BYTES, size, task.now() - start)


def _sequential(task: _Probe, files: Sequence[Path]) -> dict[str, Any]:
    files, cache = _cold(task, files)
    buffer = bytearray(_BLOCK_BYTES)

    def blocks() -> Iterator[int]:
        left = task.limits.large_file_bytes
        for file in files:
            with file.open("rb", buffering=0) as stream:
                while left > 0 and (count := stream.readinto(buffer)):
                    left -= count
                    yield count

    return {**_rates("blocks", *task.timed(blocks())), "cache": cache}


def _make_small(task: _Probe, place: Path) -> list[Path]:
    content = os.urandom(task.limits.small_file_bytes)
    files = [place / f"small{number}" for number in range(task.limits.small_files)]

    def made() -> Iterator[int]:
        for file in files:
            yield file.write_bytes(content)

    count, _, _ = task.timed(made())
    return files[:count]


def _random_files(task: _Probe, files: Sequence[Path]) -> dict[str, Any]:
    """Whole files in random order, each opened, read and closed, with the median and the worst of their times."""
    files, cache = _cold(task, files)
    order = random.Random(0).sample(list(files), len(files))
    times_s: list[float] = []

    def read() -> Iterator[int]:
        for file in order:
            start = task.now()
            size = len(file.read_bytes())
            times_s.append(task.now() - start)
            yield size

    rates = _rates("files", *task.timed(read()))
    times_s.sort()
    return {**rates, "median_s": times_s[len(times_s) // 2], "worst_s": times_s[-1], "cache": cache}


def _metadata(task: _Probe, place: Path) -> dict[str, Any]:
    """Empty files made, looked up and deleted; a part each."""
    files = [place / f"empty{number}" for number in range(task.limits.empty_files)]

    def each(work: Callable[[Path], object], names: Sequence[Path]) -> tuple[int, float]:
        def done() -> Iterator[int]:
            for name in names:
                work(name)
                yield 0

        count, _, seconds = task.timed(done())
        return count, seconds

    made, create_s = each(Path.touch, files)
    looked_up, stat_s = each(Path.stat, files[:made])
    gone, delete_s = each(Path.unlink, files[:made])
    return {
        "creates_per_s": _per_second(made, create_s),
        "stats_per_s": _per_second(looked_up, stat_s),
        "deletes_per_s": _per_second(gone, delete_s),
        "files": made,
        "seconds": create_s + stat_s + delete_s,
    }


def _listed(task: _Probe, directory: Path) -> Iterator[Path]:
    """The first regular files under a directory, in the order in which they are found."""
    start = task.now()
    left = task.limits.small_files
    for parent, _, names in os.walk(directory, onerror=_raise):
        for name in names:
            file = Path(parent, name)
            if file.is_file():
                yield file
                left -= 1
            if left == 0 or task.now() - start >= task.limits.part_s:
                return


def _raise(error: OSError) -> None:
    raise error


def _cold(task: _Probe, files: Sequence[Path]) -> tuple[list[Path], str]:
    """Drop files from the page cache, as many as time allows; returns these and what mincore(2) then says of them."""

    def dropped() -> Iterator[int]:
        for file in files:
            with suppress(OSError):
                drop_cached(file)
            yield 0

    count, _, _ = task.timed(dropped())
    chosen = list(files[:count])
    try:
        pairs = [resident(file) for file in chosen]
    except OSError:
        return chosen, "unknown"
    if any(pair is None for pair in pairs) or not all(map(only_page_cache, chosen[:1])):
        return chosen, "unknown"
    here, pages = (sum(pair[part] for pair in pairs if pair) for part in (0, 1))
    if here <= _UNCACHED_SHARE * pages:
        return chosen, "cold"
    return chosen, "warm" if here >= _CACHED_SHARE * pages else "unknown"


def _rates(what: str, count: int, size: int, seconds: float) -> dict[str, Any]:
    """``what`` names the operations: the rate is ``<what>_per_s``."""
    rates = {what: count, "seconds": seconds, f"{what}_per_s": _per_second(count, seconds)}
    return {**rates, "bytes": size, "bytes_per_s": _per_second(size, seconds)} if size else rates


def _per_second(count: int, seconds: float) -> float | None:
    """None where the clock is too coarse to tell."""
    return count / seconds if seconds > 0 else None
