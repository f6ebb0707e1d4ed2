"""Foreign logs → one table: a row per configuration of a log, published and honest rates side by side."""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.analysis.foreign.patterns import Pattern
from harness.errors import UserError
from harness.files import read_file
from harness.model.column import Column

if TYPE_CHECKING:
    import pandas as pd

    from harness.analysis.foreign.segments import Value

#: What every row has; columns of the log's own configuration stand between ``pattern`` and ``steps``.
COLUMNS = (
    Column("log", "text", "", "path of the log"),
    Column("line", "int", "", "line at which the configuration begins"),
    Column("pattern", "text", "", "name of the pattern that read it"),
    Column("steps", "int", "", "lines for steps (or epochs) found"),
    Column("warmup_steps", "int", "", "leading slow ones, left out of all rates computed here"),
    Column("left_out_steps", "int", "", "those before the steady window, warm-up included"),
    Column("published_images_per_s", "float", "1/s", "as the program printed it", True),
    Column(
        "mean_of_step_rates", "float", "1/s", "arithmetic mean of step rates; overstated while a buffer drains", True
    ),
    Column("elapsed_images_per_s", "float", "1/s", "images / elapsed time over the same steps (harmonic mean)", True),
    Column("images_per_s", "float", "1/s", "images / elapsed time over the steady window", True),
    Column("images_per_s_low", "float", "1/s", "lower end of its 95 % interval"),
    Column("images_per_s_high", "float", "1/s", "upper end of its 95 % interval"),
    Column("overstated", "float", "", "published (or mean of step rates) / steady rate (or images / elapsed time)"),
    Column("remark", "text", "", "where published and honest rates part, and why there is no steady rate"),
)
_HEAD = 3
#: how many logs were read, and their rows
Read = tuple[int, list[dict[str, Any]]]
#: Logs that are measured together: at most so many, of about so many bytes.
TOGETHER, PIECE_BYTES = 64, 1 << 20
#: What a log costs besides its bytes, in bytes; from how many on a second process saves more than it costs.
EACH_BYTES, PARALLEL_FROM = 4096, 3 << 20
MOST_WORKERS = 8


def paths(globs: Sequence[str]) -> list[Path]:
    """Files that the globs name, each once, sorted.

    Raises:
        UserError: where a glob names no file.
    """
    found: set[Path] = set()
    for text in globs:
        path = Path(text).expanduser()
        pattern = str(path.relative_to(path.anchor))
        # what is no file is named when it is read
        is_named = path.exists() and not path.is_dir()
        here = {path} if is_named else {p for p in Path(path.anchor).glob(pattern) if p.is_file()}
        if not here:
            raise UserError(f"no file matches {text!r}; quote the glob, ** goes through folders")
        found |= here
    return sorted(found)


def read(path: Path) -> str:
    """A log's text; gzip is unpacked, what is not UTF-8 is replaced."""
    data = read_file(path, pipes=True)
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace")


@dataclass(frozen=True)
class LogTable:
    """A row for each configuration measured in the logs; ``names`` are the columns, of which a row may lack some."""

    names: list[str]
    rows: list[dict[str, Any]]

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(self.rows, columns=self.names)

    def csv(self) -> str:
        """As pandas writes it, without its import, which takes as long as reading a thousand logs."""
        columns = [_column([row.get(name, math.nan) for row in self.rows]) for name in self.names]
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.names)
        writer.writerows(zip(*columns, strict=True))
        return stream.getvalue()


def _column(values: list[Any]) -> list[str]:
    """Cells as text: a column of numbers holds integers only where all of it does."""
    kinds = set(map(type, values))
    if kinds == {int, float}:
        values = list(map(float, values))
    return ["" if value != value else str(value) for value in values]


def collect_logs(
    logs: Sequence[Path],
    pattern: Pattern,
    given: Mapping[str, Value],
    progress: Callable[[int], None] | None = None,
) -> LogTable:
    """A row for each measured configuration in the logs; a log without one is left out of the table.

    ``progress`` is told how many logs have been read.

    Raises:
        UserError: for a log that cannot be read.
    """
    with reading(logs, pattern, given) as pieces:
        return table_of(pieces, progress)


@contextmanager
def reading(logs: Sequence[Path], pattern: Pattern, given: Mapping[str, Value]) -> Iterator[Iterator[Read]]:
    """The rows of the logs, some logs at a time and in order; by several processes where there is much to read.

    These are forked here, so that they and this process import at the same time; so only where nothing that starts
    threads has been imported yet, as numpy does, for a fork would find them stopped in the middle of anything.
    """
    pieces, work = _pieces(logs)
    several = min(len(os.sched_getaffinity(0)), MOST_WORKERS, len(pieces)) if work >= PARALLEL_FROM else 1
    if several < 2 or len(list(Path("/proc/self/task").iterdir())) > 1:
        yield (_read(piece, pattern, given) for piece in pieces)
        return
    import multiprocessing

    from harness.analysis import processes

    with processes.pool(several, multiprocessing.get_context("fork"), _prepare, pattern, given) as executor:
        yield executor.map(_read_as_prepared, pieces)


def _pieces(logs: Sequence[Path]) -> tuple[list[list[Path]], int]:
    """Logs that are read together, and how much there is to read in all, as bytes."""
    pieces: list[list[Path]] = []
    work = left = 0
    for log in logs:
        size = log.stat().st_size + EACH_BYTES
        if left < size or len(pieces[-1]) == TOGETHER:
            pieces.append([])
            left = PIECE_BYTES
        pieces[-1].append(log)
        left -= size
        work += size
    return pieces, work


_prepared: list[tuple[Pattern, Mapping[str, Value]]] = []


def _prepare(pattern: Pattern, given: Mapping[str, Value]) -> None:
    """What a process that was forked to read logs keeps, for it would come anew with each piece."""
    _prepared.append((pattern, given))


def _read_as_prepared(logs: Sequence[Path]) -> Read:
    return _read(logs, *_prepared[-1])


def _read(logs: Sequence[Path], pattern: Pattern, given: Mapping[str, Value]) -> Read:
    # here, since a process that only asks others for rows need not import numpy
    from harness.analysis.foreign.log_rows import rows_of

    return len(logs), rows_of(logs, pattern, given)


def table_of(pieces: Iterable[Read], progress: Callable[[int], None] | None = None) -> LogTable:
    """The table of all rows; ``progress`` is told how many logs have been read."""
    rows: list[dict[str, Any]] = []
    read = 0
    for count, more in pieces:
        rows += more
        read += count
        if progress is not None:
            progress(read)
    own = list(dict.fromkeys(name for row in rows for name in row if name not in NAMES))
    return LogTable([*NAMES[:_HEAD], *own, *NAMES[_HEAD:]], rows)


NAMES = [column.name for column in COLUMNS]
