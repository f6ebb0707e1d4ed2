"""Evidence cut off or damaged anywhere: collect neither fails nor invents a number."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest
from evidence_support import FakeCampaign, FakeRun
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.analysis import findings
from harness.analysis.collect import collect
from harness.analysis.evidence import read_run
from harness.layout import AttemptLayout
from harness.model.axes import Axes
from harness.model.event import STEP_COLUMNS

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


def test_images_beyond_whole_numbers_are_unknown(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    campaign, layout = campaign_in(tmp_path)
    extra = {name: [100.0] for name in STEP_COLUMNS} | {"event": "steps", "step": [41], "fresh": [1e300]}
    with layout.events(1).open("a") as stream:
        stream.write(json.dumps(extra) + "\n")
    collect(campaign.layout)
    steps = pd.read_parquet(campaign.layout.steps_parquet)
    assert steps[["step", "fresh", "consumed"]].iloc[-1].isna().tolist() == [False, True, False]
    assert not recwarn.list
