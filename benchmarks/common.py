"""What all benchmarks share: paired ratios with their spread, the machine's name, and one form of result.

A benchmark is a module ``bench_<name>.py`` with ``main()``, which reads its arguments with :func:`arguments`, prints
its rows with :func:`finish` and, with ``--json FILE``, leaves them to ``benchmarks/run.py``. Times of the two sides
come from one run, alternating, so that a drift of the machine falls on both.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from scipy import stats as distributions

# where this forbids Python to keep what it has compiled, every command measured would compile changed files anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@dataclass(frozen=True)
class Ratio:
    """Geometric mean of paired ratios, with the 95 % interval of Student's t on their logarithms."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return ratio_words(self.value, self.low, self.high)

    def at_most(self, bound: float) -> bool | None:
        """Whether it is so; None where the interval holds larger and smaller ones, or one pair gave none."""
        return True if self.high <= bound else False if self.low > bound else None

    def at_least(self, bound: float) -> bool | None:
        """Whether it is so; None as in :meth:`at_most`."""
        return True if self.low >= bound else False if self.high < bound else None


def ratio_words(value: float, low: float, high: float) -> str:
    """A ratio with its interval, or alone where one pair gave none; near 1 to the thousandth, else in three digits."""
    if math.isnan(low):
        return f"{_digits(value)}, one pair"
    return f"{_digits(value)} [{_digits(low)}, {_digits(high)}]"


def _digits(value: float) -> str:
    if 0.9 <= value < 1.1:
        return f"{value:.3f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


@dataclass(frozen=True)
class Row:
    """One line of the table in docs/performance.md.

    ``ours`` and ``theirs`` are medians in ``unit``; ``ratio`` is formed as ``ratio_is`` says; ``met`` is None where no
    aim was set, or where the interval does not tell.
    """

    what: str
    ours: float
    unit: str
    against: str = ""
    theirs: float | None = None
    ratio_is: str = ""
    ratio: Ratio | None = None
    aim: str = ""
    met: bool | None = None
    note: str = ""


def paired_ratio(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Ratio of paired positive readings, ``above[i] / below[i]``.

    Raises:
        ValueError: where the two are not of one length, or there are none.
    """
    logs = [math.log(a / b) for a, b in zip(above, below, strict=True)]
    if not logs:
        raise ValueError("no pairs")
    mean = sum(logs) / len(logs)
    if len(logs) == 1:
        return Ratio(math.exp(mean), math.nan, math.nan, 1)
    spread = math.sqrt(sum((x - mean) ** 2 for x in logs) / (len(logs) - 1) / len(logs))
    half = float(distributions.t.ppf(0.975, len(logs) - 1)) * spread
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(logs))


def seconds(function: Callable[[], Any]) -> float:
    """Elapsed time of one call."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def machine() -> dict[str, Any]:
    """Where this was measured: CPU, cores given to this process, load, kernel, Python, time."""
    models = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory_kib = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory_kib / 2**20),
        "load_1min": round(os.getloadavg()[0], 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "utc": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
    }


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """A parser with what every benchmark takes: ``--quick`` (a trial of seconds) and ``--json FILE``."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small trial: shows that it runs, not what it costs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to FILE")
    return parser


def finish(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """Print the rows; write them where ``--json`` says."""
    for row in rows:
        theirs = f"  {row.against}: {row.theirs:.4g} {row.unit}" if row.theirs is not None else ""
        ratio = f"  {row.ratio_is} = {row.ratio}" if row.ratio else ""
        met = "not decided" if row.met is None else "met" if row.met else "NOT met"
        aim = f"  aim {row.aim}: {met}" if row.aim else ""
        print(f"{row.what}: {row.ours:.4g} {row.unit}{theirs}{ratio}{aim}{'  (' + row.note + ')' if row.note else ''}")
    if options.json:
        record = {"machine": machine(), "quick": options.quick, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(record, indent=1) + "\n")


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
