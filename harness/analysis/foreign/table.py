"""Foreign logs → one table: a row per configuration of a log, published and honest rates side by side."""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.analysis.foreign.patterns import Pattern
from harness.analysis.foreign.rates import COARSE, Rates, rates_of
from harness.analysis.foreign.segments import Segment, Value, segments
from harness.errors import UserError
from harness.files import read_file
from harness.model.column import Column

if TYPE_CHECKING:
    import pandas as pd

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
    rows: list[dict[str, Any]] = []
    for first in range(0, len(logs), TOGETHER):
        found = [(path, segment) for path in logs[first : first + TOGETHER] for segment in _read(path, pattern, given)]
        measured = rates_of([segment for _, segment in found], pattern)
        rows += [_row(path, pattern, segment, rates) for (path, segment), rates in zip(found, measured, strict=True)]
        if progress is not None:
            progress(min(first + TOGETHER, len(logs)))
    own = list(dict.fromkeys(name for row in rows for name in row if name not in _NAMES))
    return LogTable([*_NAMES[:_HEAD], *own, *_NAMES[_HEAD:]], rows)


#: Logs that are measured together.
TOGETHER = 64


def _read(path: Path, pattern: Pattern, given: Mapping[str, Value]) -> list[Segment]:
    try:
        text = read(path)
    except (OSError, EOFError) as error:
        raise UserError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return segments(text, pattern, given)


_NAMES = [column.name for column in COLUMNS]


def _row(path: Path, pattern: Pattern, segment: Segment, found: Rates) -> dict[str, Any]:
    known = found.steady.known
    own = {name: int(v) if isinstance(v, float) and v.is_integer() else v for name, v in segment.configuration.items()}
    return {name: value for name, value in own.items() if name not in _NAMES} | {
        "log": str(path),
        "line": segment.line,
        "pattern": pattern.name,
        "steps": found.steps,
        "warmup_steps": found.warmup,
        "left_out_steps": found.left_out,
        "published_images_per_s": found.published,
        "mean_of_step_rates": found.mean_of_steps,
        "elapsed_images_per_s": found.elapsed,
        "images_per_s": found.steady.value,
        "images_per_s_low": found.steady.low if known else math.nan,
        "images_per_s_high": found.steady.high if known else math.nan,
        "overstated": found.overstated,
        "remark": remark(found),
    }


def remark(found: Rates) -> str:
    """``published 2.67 times what the steps sustain; no steady rate: …``."""
    said = []
    if found.parts:
        what = "published" if math.isfinite(found.published) else "mean of step rates"
        against = "is sustained" if math.isfinite(found.steady.value) else "images / elapsed time gives"
        said.append(f"{what} {found.overstated:.3g} times what {against}")
    if found.reason:
        said.append(f"no steady rate: {found.reason}")
    if found.rounding > COARSE:
        said.append(f"printed to ±{found.rounding:.0%} only")
    if found.validated:
        said.append("step times hold the validation")
    return "; ".join(said)
