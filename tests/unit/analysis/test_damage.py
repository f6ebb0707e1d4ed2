"""Evidence cut off or damaged anywhere: collect neither fails nor invents a number."""

from __future__ import annotations

import errno
import json
import math
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from evidence_support import FakeCampaign, FakeRun
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.analysis import findings
from harness.analysis.collect import collect, collect_rows
from harness.analysis.evidence import read_run
from harness.analysis.rows_table import to_frame
from harness.cli.main import cli
from harness.errors import of_the_system
from harness.layout import AttemptLayout
from harness.model.axes import Axes
from harness.model.event import STEP_COLUMNS
from harness.model.ledger import NOT_SHOWN, damage_text

DURATIONS = [1.0] + [0.2] * 40


def campaign_in(root: Path) -> tuple[FakeCampaign, AttemptLayout]:
    campaign = FakeCampaign(root)
    axes = Axes(workload="replay", framework="none", cpu_cores=2, ranks_per_node=2, steps_timed=40)
    layout = campaign.add(axes, FakeRun([DURATIONS, DURATIONS]))
    campaign.save()
    return campaign, layout


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1), rank=st.integers(0, 1))
def test_a_file_cut_off_at_any_byte(tmp_path_factory: pytest.TempPathFactory, share: float, rank: int) -> None:
    campaign, layout = campaign_in(tmp_path_factory.mktemp("cut"))
    whole = layout.events(rank).read_bytes()
    cut = int(share * len(whole))
    layout.events(rank).write_bytes(whole[:cut])
    row = collect(campaign.layout).iloc[0]
    if cut < len(whole) - 1:
        assert row["state"] == "FAILED"
    assert math.isnan(row["images_per_s"]) or row["images_per_s"] == pytest.approx(320.0)


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "steps", "step": [41, 42], "begin_s": [1.0]}',
        '{"event": "steps", "step": "all"}',
        '{"event": "steps"}',
        '{"event": 7}',
        '{"event": "loss", "value": "NaN"}',
        '{"event": "affinity", "allowed_cpus": 3}',
        "[1, 2]",
        "\x00\x00\x00",
    ],
)
def test_a_strange_line_leaves_the_number_as_it_is(tmp_path: Path, line: str) -> None:
    campaign, layout = campaign_in(tmp_path)
    with layout.events(0).open("a") as stream:
        stream.write(line + "\n")
    row = collect(campaign.layout).iloc[0]
    assert row["images_per_s"] == pytest.approx(320.0)


def test_nonsense_in_one_run_does_not_cost_the_others_their_table(tmp_path: Path) -> None:
    campaign, layout = campaign_in(tmp_path)
    other = Axes(workload="replay", framework="none", steps_timed=40)
    campaign.add(other, FakeRun([DURATIONS]))
    campaign.save()
    with layout.events(0).open("a") as stream:
        stream.write(json.dumps({"event": "stage", "seconds": "soon", "bytes": []}) + "\n")
    table = collect(campaign.layout).set_index("cpu_cores")
    assert table.loc[1, "images_per_s"] == pytest.approx(160.0)
    assert pd.isna(table.loc[2, "images_per_s"])
    assert [f.code for f in findings.parse(table.loc[2, "findings"])] == ["evidence_unreadable"]


@pytest.mark.parametrize("content", ["", "{", '{"code": "zero"}'])
def test_a_damaged_exit_record_is_no_success(tmp_path: Path, content: str) -> None:
    campaign, layout = campaign_in(tmp_path)
    layout.exit.write_text(content)
    row = collect(campaign.layout).iloc[0]
    assert row["state"] == "LOST"
    assert row["images_per_s"] == pytest.approx(320.0)


def test_without_point_json_the_plan_says_what_was_wanted(tmp_path: Path) -> None:
    campaign, layout = campaign_in(tmp_path)
    layout.point.unlink()
    row = collect(campaign.layout).iloc[0]
    assert (row["cpu_cores"], row["state"]) == (2, "LOST")
    assert pd.isna(row["images_per_s"])


def test_a_directory_that_cannot_be_listed_is_a_problem_and_no_error(tmp_path: Path) -> None:
    run = read_run(AttemptLayout(tmp_path / ("r" * 300)))
    assert run.spec is None
    assert "File name too long" in run.problems[0]


@pytest.mark.parametrize("attempt", [1e300, math.inf, -1, 0, 10**9, 10**30, "x", "2", True, None, [1], 1.0])
def test_an_attempt_that_cannot_be_is_told_with_its_line(tmp_path: Path, attempt: object) -> None:
    campaign, layout = campaign_in(tmp_path)
    intent = {"record": "intent", "unix_s": 1.0, "point_id": layout.root.parent.name, "job_name": "h", "script": "s"}
    lines = [{**intent, "repeat": repeat, "attempt": number} for repeat, number in ((1, 1), (0, attempt), (2, 1))]
    campaign.layout.ledger.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for _ in range(2):  # what was told is told again
        damage: list[str] = []
        table = collect_rows(campaign.layout, damage=damage)
        assert damage == [damage_text(campaign.layout.ledger, [2], NOT_SHOWN)]
        assert table["repeat"].to_pylist() == [0, 1, 2]
        assert table["attempt"].to_pylist() == [1, 1, 1]
        assert table["state"].to_pylist() == ["SUCCEEDED", "INTENDED", "INTENDED"]


def test_the_verb_names_damage_that_belongs_to_no_run_and_collects_the_rest(tmp_path: Path) -> None:
    campaign, _ = campaign_in(tmp_path)
    campaign.layout.ledger.write_text("torn\n")
    done = CliRunner().invoke(cli, ["collect", "fake", "--results", str(tmp_path)])
    assert done.exit_code == 0
    said = damage_text(campaign.layout.ledger, [1], NOT_SHOWN)
    assert done.stderr.strip() == f"harness: {said}"
    assert said.startswith(
        f"{campaign.layout.ledger}: line 1 is damaged and left out; a job that no other line tells of"
    )
    assert done.stdout.startswith("1 attempts (1 SUCCEEDED)")


@pytest.mark.parametrize("number", ["attempt", "repeat", "rank"])
def test_a_name_with_an_absurd_number_is_no_evidence(tmp_path: Path, number: str) -> None:
    campaign, layout = campaign_in(tmp_path)
    point, digits = layout.root.parent, "9" * 30
    absurd = {"attempt": point / f"r0a{digits}", "repeat": point / f"r{digits}a1"}
    if number == "rank":
        (layout.root / f"events.r{digits}.jsonl").write_bytes(layout.events(0).read_bytes())
    else:
        shutil.copytree(layout.root, absurd[number])
    table = collect(campaign.layout)
    assert table["images_per_s"].tolist() == [pytest.approx(320.0)]


def test_the_lines_of_a_ledger_full_of_damage_are_counted(tmp_path: Path) -> None:
    campaign, _ = campaign_in(tmp_path)
    ledger = campaign.layout.ledger
    ledger.write_text('{"record": "note", "unix_s": 1, "message": "m"}\n\n' + "torn\n" * 12)
    damage: list[str] = []
    assert collect_rows(campaign.layout, damage=damage)["state"].to_pylist() == ["SUCCEEDED"]
    assert damage == [damage_text(ledger, range(3, 15), NOT_SHOWN)]
    assert f"{ledger}: 12 lines (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, …) are damaged" in damage[0]


def test_a_points_directory_that_cannot_be_listed_costs_no_other_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign, layout = campaign_in(tmp_path)
    campaign.add(Axes(workload="replay", framework="none", steps_timed=40), FakeRun([DURATIONS]))
    campaign.save()
    closed = layout.root.parent
    intent = {"record": "intent", "unix_s": 1.0, "job_name": "h", "script": "s", "repeat": 0, "attempt": 1}
    campaign.layout.ledger.write_text(json.dumps(intent | {"point_id": closed.name}) + "\n")
    damage: list[str] = []
    with monkeypatch.context() as patch:
        forbid(patch, closed)
        runs = to_frame(collect_rows(campaign.layout, damage=damage)).set_index("cpu_cores")
    assert runs.loc[1, "images_per_s"] == pytest.approx(160.0)
    assert runs.loc[2, "state"] == "INTENDED"
    assert "Permission denied" in runs.loc[2, "findings"]
    assert damage == [f"{closed}: Permission denied; attempts there that the ledger does not name are left out"]
    damage.clear()
    assert collect_rows(campaign.layout, damage=damage)["state"].to_pylist() == ["SUCCEEDED"] * 2
    assert damage == []


def forbid(patch: pytest.MonkeyPatch, closed: Path) -> None:
    """As the system does to others than root: nothing in ``closed`` can be seen."""

    def forbidden(call: Callable[..., Any]) -> Callable[..., Any]:
        def tried(path: Any, *args: Any, **kwargs: Any) -> Any:
            if str(path).startswith(str(closed)):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return call(path, *args, **kwargs)

        return tried

    for name in ("scandir", "listdir", "open"):
        patch.setattr(os, name, forbidden(getattr(os, name)))


def test_samples_that_cannot_be_read_cost_their_run_no_rate(tmp_path: Path) -> None:
    campaign, layout = campaign_in(tmp_path)
    layout.samples("n1").mkdir()
    row = collect(campaign.layout).iloc[0]
    assert row["images_per_s"] == pytest.approx(320.0)
    assert "samples.n1.jsonl: Is a directory" in row["findings"]


@pytest.mark.parametrize("ranks", [10**7, 10**400])
def test_more_ranks_than_any_machine_has_are_damage(tmp_path: Path, ranks: int) -> None:
    campaign, layout = campaign_in(tmp_path)
    spec = json.loads(layout.point.read_bytes())
    spec["placement"]["ranks_per_node"] = ranks
    layout.point.write_text(json.dumps(spec))
    row = collect(campaign.layout).iloc[0]
    assert (row["state"], row["cpu_cores"]) == ("LOST", 2)
    assert "point.json: more than 1000000 ranks" in row["findings"]


@pytest.mark.parametrize("name", ["ledger", "exit", "events"])
def test_brackets_within_brackets_are_damage(tmp_path: Path, name: str) -> None:
    campaign, layout = campaign_in(tmp_path)
    path = {"ledger": campaign.layout.ledger, "exit": layout.exit, "events": layout.events(0)}[name]
    with path.open("a") as stream:
        stream.write("[" * 100_000 + "]" * 100_000 + "\n")
    row = collect(campaign.layout).iloc[0]
    assert row["state"] == ("LOST" if name == "exit" else "SUCCEEDED")
    assert row["images_per_s"] == pytest.approx(320.0)


def test_step_times_without_sense_print_no_warning(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    campaign, layout = campaign_in(tmp_path)
    for rank in (0, 1):
        lines = layout.events(rank).read_text().splitlines()
        events = [{name: value for name, value in json.loads(line).items() if name != "crc"} for line in lines]
        [steps] = [event for event in events if event["event"] == "steps"]
        steps["wait_s"] = [math.inf, -math.inf] * 20 + [math.nan]
        layout.events(rank).write_text("".join(json.dumps(event) + "\n" for event in events))
    collect(campaign.layout)
    assert not recwarn.list


def test_images_beyond_whole_numbers_are_unknown(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    campaign, layout = campaign_in(tmp_path)
    extra = {name: [100.0] for name in STEP_COLUMNS} | {"event": "steps", "step": [41], "fresh": [1e300]}
    with layout.events(1).open("a") as stream:
        stream.write(json.dumps(extra) + "\n")
    collect(campaign.layout)
    steps = pd.read_parquet(campaign.layout.steps_parquet)
    assert steps[["step", "fresh", "consumed"]].iloc[-1].isna().tolist() == [False, True, False]
    assert not recwarn.list


def test_a_disk_that_is_full_under_the_steps_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    campaign, layout = campaign_in(tmp_path)
    collect(campaign.layout)
    kept = {path: path.read_bytes() for path in campaign.layout.root.glob("*.parquet")}
    (layout.root / "events.r1.jsonl").unlink()  # so that there is something to collect
    limit, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            collect(campaign.layout)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    assert str(caught.value.filename) == str(campaign.layout.steps_parquet)
    assert "ulimit -f" in of_the_system(caught.value)
    assert {path: path.read_bytes() for path in campaign.layout.root.glob("*.parquet")} == kept
    assert not list(campaign.layout.root.glob(".steps*"))
