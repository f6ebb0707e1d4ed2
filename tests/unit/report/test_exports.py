"""Exports: every one loads where it is meant to be loaded, with the numbers of the table."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from evidence_support import FakeCampaign, FakeRun

from harness.cli.main import cli
from harness.model.axes import Axes
from harness.report.export import to_latex
from harness.report.grid import Grid


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """1 core: 160 images/s; 2 cores: 280 ± 1 %, one of two failed; storage's name is awkward."""
    campaign = FakeCampaign(tmp_path, "cores", varied=("cpu_cores",), repeats=2)
    for cores, seconds in ((1, 0.2), (2, 0.2 / 1.75)):
        for repeat in range(2):
            point = Axes(workload="replay", cpu_cores=cores, storage="a_b & 50%", batch_size=32, steps_timed=20)
            run = FakeRun([[1.0] + [seconds] * 20], exit_code=1 if (cores, repeat) == (2, 1) else 0)
            campaign.add(point, run, repeat=repeat)
    campaign.save()
    return tmp_path


def call(results: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["table", "cores", "--results", str(results), *arguments], standalone_mode=False)


def test_scaling_has_speedup_efficiency_and_n(results: Path) -> None:
    frame = pd.read_csv(io.StringIO(call(results, "--scaling", "--format", "csv").output))
    assert list(frame.columns) == ["cpu cores", "images/s", "speed-up", "efficiency"]
    assert list(frame["images/s"]) == ["160.0 n=2", "280.0 n=1"]
    assert list(frame["efficiency"]) == ["100%", "88%"]
    assert list(frame["speed-up"].astype(float)) == [1, 1.75]


def test_parquet_loads_in_pandas(results: Path, tmp_path: Path) -> None:
    path = tmp_path / "points.parquet"
    assert call(results, "--format", "parquet", "-o", str(path)).exit_code == 0
    frame = pd.read_parquet(path)
    assert list(frame["axis.cpu_cores"]) == [1, 2]
    assert list(frame["images_per_s"]) == pytest.approx([160, 280])
    assert json.loads(frame["states"][1]) == {"SUCCEEDED": 1, "FAILED": 1}


def test_csv_markdown_and_json_files(results: Path, tmp_path: Path) -> None:
    for form in ("csv", "markdown", "latex"):
        assert call(results, "--format", form, "-o", str(tmp_path / form)).output.strip() == str(tmp_path / form)
    assert list(pd.read_csv(tmp_path / "csv")["runs"]) == ["2", "1 of 2"]
    assert (tmp_path / "markdown").read_text().startswith("| cpu cores |")
    call(results, "--json", "-o", str(tmp_path / "json"))
    assert list(pd.read_json(tmp_path / "json")["runs"]) == [2, 1]


def test_latex_is_escaped() -> None:
    grid = Grid("a\nb", ("x_y", "50 %"), (True, False), (("[1, 2]", "a & b \\ ~^ – {#}$"),), ("note\nmore",))
    assert to_latex(grid).splitlines() == [
        "% a b",
        r"\begin{tabular}{rl}",
        r"\toprule",
        r"x\_y & 50 \% \\",
        r"\midrule",
        r"{}[1, 2] & a \& b \textbackslash{} \textasciitilde{}\textasciicircum{} -- \{\#\}\$ \\",
        r"\bottomrule",
        r"\end{tabular}",
        "% note more",
    ]


def test_mllog_lines_are_what_mlperf_reads(results: Path) -> None:
    lines = call(results, "--format", "mllog").output.splitlines()
    assert all(line.startswith(":::MLLOG {") for line in lines)
    frame = pd.DataFrame([json.loads(line.removeprefix(":::MLLOG ")) for line in lines])
    assert list(frame.columns) == ["namespace", "time_ms", "event_type", "key", "value", "metadata"]
    assert (frame["key"] == "run_start").sum() == 4
    stops = frame[frame["key"] == "run_stop"]
    assert sorted(m["status"] for m in stops["metadata"]) == ["aborted", "success", "success", "success"]
    assert set(stops["time_ms"]) == {1060000}
    rates = [value["throughput"] for value in frame[frame["key"] == "tracked_stats"]["value"]]
    assert sorted(rates)[:2] == pytest.approx([160, 160])
    assert set(frame[frame["key"] == "global_batch_size"]["value"]) == {32}
    assert sorted(frame[frame["key"] == "seed"]["value"]) == [0, 0, 1, 1]


def test_binary_and_whole_exports_refuse_what_they_cannot_hold(results: Path) -> None:
    assert "give -o" in str(call(results, "--format", "parquet").exception)
    assert "leave --pivot" in str(call(results, "--format", "mllog", "--scaling").exception)
