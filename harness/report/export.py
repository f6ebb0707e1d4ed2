"""Exports of the points and runs: LaTeX, Parquet, and MLPerf logging lines."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from harness.analysis.points import plain
from harness.model.campaign import Campaign
from harness.model.job import JobState
from harness.report.grid import Grid
from harness.report.tables import points_records

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "×": r"$\times$"}
_LATEX |= {c: "\\" + c for c in "&%$#_{}"}
_SPECIAL = re.compile("|".join(re.escape(c) for c in _LATEX))


def to_latex(grid: Grid) -> str:
    """The grid as a ``tabular`` of the booktabs package; texts are escaped, notes stand below as comments."""
    columns = "".join("r" if numeric else "l" for numeric in grid.numeric)
    lines = [f"% {_one_line(grid.title)}", f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
    lines += [" & ".join(map(_latex, grid.headers)) + r" \\", "\\midrule"]
    lines += [" & ".join(map(_latex, row)) + r" \\" for row in grid.rows]
    lines += ["\\bottomrule", "\\end{tabular}"]
    lines += [f"% {_one_line(note)}" for note in grid.notes]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _latex(cell: str) -> str:
    # a cell that begins with a bracket would be read as the argument of the line break before it
    escaped = _SPECIAL.sub(lambda match: _LATEX[match[0]], _one_line(cell))
    return "{}" + escaped if escaped.startswith("[") else escaped


def to_parquet(table: pd.DataFrame, campaign: Campaign) -> bytes:
    """The points with full numbers, a row each, varied axes as columns ``axis.<name>``."""
    rows = []
    for record in points_records(table, campaign):
        axes, states = record.pop("axes"), record.pop("states")
        codes = record.pop("findings")
        rows.append(
            {f"axis.{name}": value for name, value in axes.items()}
            | record
            | {"states": json.dumps(states), "findings": json.dumps(codes)}
        )
    buffer = io.BytesIO()
    pd.DataFrame(rows).to_parquet(buffer, index=False)
    return buffer.getvalue()


def to_mllog(table: pd.DataFrame) -> str:
    """Lines as mlperf_logging writes them, for every run that counts: its configuration, begin, throughput and end.

    Format: ``:::MLLOG`` and a JSON object with namespace, time_ms, event_type, key, value and metadata
    (mlcommons/logging, mlperf_logging/mllog). ``run_start`` is the begin of the job script.
    """
    counted = table[table["counts"].fillna(False).astype(bool) & table["started_unix_s"].notna()]
    return "".join(line for _, run in counted.iterrows() for line in _run_lines(run))


#: Our column → MLPerf's key.
_CONFIGURATION = {"workload": "submission_benchmark", "cluster": "submission_platform"}


def _run_lines(run: Mapping[str, Any]) -> Iterator[str]:
    start_ms = round(1000 * float(run["started_unix_s"]))
    job_s = plain(run["job_s"])
    end_ms = start_ms + round(1000 * float(job_s)) if job_s is not None else start_ms
    metadata = {"point_id": str(run["point_id"]), "repeat": int(run["repeat"]), "attempt": int(run["attempt"])}
    for column, key in _CONFIGURATION.items():
        if (value := plain(run[column])) is not None:
            yield _line(start_ms, "POINT_IN_TIME", key, value, metadata)
    # repeat r uses seed + r
    yield _line(start_ms, "POINT_IN_TIME", "seed", int(plain(run["seed"]) or 0) + int(run["repeat"]), metadata)
    batch, ranks = plain(run["batch_size"]), plain(run["ranks"])
    if batch is not None and ranks is not None:
        yield _line(start_ms, "POINT_IN_TIME", "global_batch_size", int(batch) * int(ranks), metadata)
    yield _line(start_ms, "INTERVAL_START", "run_start", None, metadata)
    rate = plain(run["images_per_s"])
    if rate is not None and math.isfinite(rate):
        steps = {"step": int(plain(run["steps_done"]) or 0), "steady": bool(plain(run["steady"]))}
        yield _line(end_ms, "POINT_IN_TIME", "tracked_stats", {"throughput": rate}, metadata | steps)
    status = "success" if run["state"] == JobState.SUCCEEDED.value else "aborted"
    yield _line(end_ms, "INTERVAL_END", "run_stop", None, metadata | {"status": status})


def _line(time_ms: int, kind: str, key: str, value: Any, metadata: Mapping[str, Any]) -> str:
    record = {"namespace": "", "time_ms": time_ms, "event_type": kind, "key": key, "value": value}
    return f":::MLLOG {json.dumps(record | {'metadata': dict(metadata)}, ensure_ascii=False)}\n"
