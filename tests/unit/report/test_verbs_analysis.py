"""The verbs collect, table, plot and check, as a user or a script calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from evidence_support import FakeCampaign, FakeRun

from harness.cli.main import cli
from harness.errors import UserError
from harness.model.axes import Axes


@pytest.fixture
def results(tmp_path: Path) -> Path:
    campaign = FakeCampaign(tmp_path / "results", "cores", varied=("cpu_cores", "prefetch"), repeats=2)
    for cores in (1, 2):
        for prefetch in (0, 8):
            for repeat in range(2):
                point = Axes(workload="replay", cpu_cores=cores, prefetch=prefetch, steps_timed=20)
                durations = [1.0] + [0.2 / cores * (1 + repeat / 100)] * 20
                campaign.add(point, FakeRun([durations], exit_code=3 if cores * prefetch == 16 else 0), repeat=repeat)
    campaign.save()
    return tmp_path / "results"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), standalone_mode=False)


def test_collect_writes_and_tells(results: Path) -> None:
    done = call("collect", "cores", "--results", str(results))
    assert "8 attempts (2 FAILED, 6 SUCCEEDED)" in done.output
    assert len(pd.read_csv(results / "cores/runs.csv")) == 8
    told = json.loads(call("collect", "cores", "--results", str(results), "--json").output)
    assert told["states"] == {"FAILED": 2, "SUCCEEDED": 6}
    assert all(Path(path).is_file() for path in told["files"])


def test_a_campaign_may_be_named_by_its_directory(results: Path) -> None:
    assert "8 attempts" in call("collect", str(results / "cores")).output


def test_table_in_every_form(results: Path) -> None:
    where = ("cores", "--results", str(results))
    assert "speed-up" in call("table", *where).output
    assert call("table", *where, "--format", "csv").output.splitlines()[0] == (
        "prefetch,cpu cores,images/s,time,speed-up,runs,remarks"
    )
    assert call("table", *where, "--format", "markdown").output.startswith("| prefetch | cpu cores |")
    records = json.loads(call("table", *where, "--json").output)
    assert [record["runs"] for record in records] == [2, 2, 2, 0]
    pivot = call("table", *where, "--pivot", "cpu_cores", "prefetch", "--format", "csv").output.splitlines()
    assert pivot[0] == "cpu_cores \\ prefetch,0,8"
    assert pivot[2].endswith(",FAILED")


def test_plot_names_files_and_what_is_missing(results: Path) -> None:
    told = json.loads(call("plot", "cores", "--results", str(results), "--format", "svg", "--json").output)
    missing = {item["figure"]: item["missing"] for item in told["skipped"]}
    assert missing["scaling"] == "the number of ranks was not varied"
    assert not {"speed-up", "two-axes", "ceilings"} & set(missing)
    assert {Path(path).suffix for path in told["files"]} == {".svg"}
    only = call("plot", "cores", "--results", str(results), "--only", "speed-up", "--format", "png")
    assert only.output.splitlines() == [str(results / "cores/plots/speed-up.png")]


def test_check_exits_1_with_findings_and_0_without(results: Path, tmp_path: Path) -> None:
    found = CliRunner().invoke(cli, ["check", "cores", "--results", str(results)])
    assert found.exit_code == 1
    assert "run_incomplete" in found.output and "prefetch 8, 2 cpu cores" in found.output
    listed = json.loads(CliRunner().invoke(cli, ["check", "cores", "--results", str(results), "--json"]).output)
    assert [group["code"] for group in listed] == ["run_incomplete"]
    clean = FakeCampaign(tmp_path, "clean", varied=(), repeats=2)
    for repeat in range(2):
        clean.add(Axes(workload="replay", steps_timed=20), FakeRun([[1.0] + [0.2] * 20]), repeat=repeat)
    clean.save()
    nothing = CliRunner().invoke(cli, ["check", str(clean.layout.root)])
    assert nothing.exit_code == 0
    assert "No findings" in nothing.output


def test_findings_of_one_kind_stand_together_each_with_its_own_advice(tmp_path: Path) -> None:
    from harness.analysis.findings import Finding
    from harness.report import findings_list

    many = [findings_list.Occurrence("p", f"{n} workers", {"waits": n}, f"try {n + 1}") for n in (1, 2)]
    group = findings_list._group("warning", "input_bound_idle_cores", "training waits", many)
    assert (group.advice, [str(o) for o in group.occurrences]) == (
        "",
        ["1 workers: waits 1 → try 2", "2 workers: waits 2 → try 3"],
    )
    alike = [findings_list.Occurrence("p", f"{n} workers", {}, "wait") for n in (1, 2)]
    group = findings_list._group(*findings_list._key(Finding("c", "info", "m")), alike)
    assert (group.advice, [str(o) for o in group.occurrences]) == ("wait", ["1 workers", "2 workers"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table", "core"), "did you mean 'cores'?"),
        (("collect", "core"), "no campaign here"),
        (("table", "cores", "--pivot", "cpu_core", "prefetch"), "did you mean 'cpu_cores'?"),
        (("plot", "cores", "--only", "speedup"), "did you mean 'speed-up'?"),
    ],
)
def test_bad_input_is_one_message_with_what_is_valid(results: Path, arguments: tuple[str, ...], message: str) -> None:
    error = call(*arguments, "--results", str(results)).exception
    assert isinstance(error, UserError) and message in str(error)


def test_a_damaged_description_is_no_traceback(results: Path) -> None:
    (results / "cores/campaign.json").write_text('{"name": "cor')
    process = subprocess.run(
        [sys.executable, "-m", "harness", "table", "cores", "--results", str(results)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )
    assert process.returncode == 2
    assert "not a campaign description" in process.stderr and "Traceback" not in process.stderr


def test_the_dictionary_is_printed_without_a_campaign() -> None:
    assert call("collect", "--dictionary").output.startswith("# Data dictionary")
