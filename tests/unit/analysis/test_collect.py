"""The table of runs against evidence whose truth is known."""

from __future__ import annotations

import gc
from pathlib import Path

import pandas as pd
import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis import findings
from harness.analysis.collect import collect, collect_rows
from harness.analysis.points import point_results
from harness.errors import UserError
from harness.model.axes import Axes
from harness.model.group import Group
from harness.model.ledger import AttemptKey


def axes(cores: int = 1, **more: object) -> Axes:
    return Axes(workload="replay", framework="none", batch_size=32, cpu_cores=cores, steps_timed=40, **more)  # type: ignore[arg-type]


def only_row(campaign: FakeCampaign) -> pd.Series:
    campaign.save()
    table = collect(campaign.layout)
    assert len(table) == 1
    return table.iloc[0]


def codes(row: pd.Series) -> set[str]:
    return {finding.code for finding in findings.parse(row["findings"])}


def test_a_plain_run_has_exact_numbers(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    campaign.add(axes(), FakeRun([[5.0] + [0.25] * 40], waits=[0.0] + [0.05] * 40))
    row = only_row(campaign)
    assert row["state"] == "SUCCEEDED"
    assert row["images_per_s"] == pytest.approx(128.0)
    assert row["images_per_s_low"] == pytest.approx(128.0)
    assert row["time_s"] == pytest.approx(10.0)
    assert row["wait_share"] == pytest.approx(0.2)
    assert row["compute_share"] == pytest.approx(0.8)
    assert row["first_step_s"] == pytest.approx(5.0)
    assert (row["steps_done"], row["steps_left_out"], row["steps_steady"]) == (41, 1, 40)
    assert row["all_images_per_s"] == pytest.approx(128.0)
    assert bool(row["steady"]) and bool(row["latest"]) and bool(row["counts"])
    assert row["job_s"] == 60.0
    assert row["framework_version"] is pd.NA or pd.isna(row["framework_version"])
    assert codes(row) == set()


def test_ranks_add_up_over_the_slowest_ones_time(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    campaign.add(axes(2, ranks_per_node=2), FakeRun([[1.0] + [0.2] * 40, [1.0] + [0.25] * 40]))
    row = only_row(campaign)
    assert row["images_per_s"] == pytest.approx(2 * 32 / 0.25)
    assert row["time_s"] == pytest.approx(10.0)
    assert row["rank_imbalance"] == pytest.approx(0.25 / 0.225 - 1)
    assert codes(row) == {"rank_imbalance"}


def test_a_missing_rank_gives_a_finding_and_no_number(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    campaign.add(axes(2, ranks_per_node=2), FakeRun([[1.0] + [0.2] * 40, None]))
    row = only_row(campaign)
    assert row["state"] == "FAILED"
    assert "rank 1" in row["reason"]
    assert pd.isna(row["images_per_s"]) and pd.isna(row["time_s"])
    assert codes(row) == {"rank_missing", "run_incomplete"}


def test_a_run_that_died_is_in_the_table_with_what_it_measured(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    run = FakeRun([[1.0] + [0.2] * 20], exit_code=137, run_end=False, tail='{"event": "steps", "step": [2')
    campaign.add(axes(), run)
    row = only_row(campaign)
    assert row["state"] == "FAILED"
    assert "137" in row["reason"]
    assert row["images_per_s"] == pytest.approx(160.0)
    assert pd.isna(row["time_s"])
    assert row["steps_done"] == 21
    assert codes(row) == {"run_incomplete", "events_torn"}


def test_without_exit_evidence_a_run_is_lost(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    campaign.add(axes(), FakeRun([[0.2] * 41], exit_code=None))
    assert only_row(campaign)["state"] == "LOST"


def test_a_gap_in_the_record_makes_no_false_rate(tmp_path: Path) -> None:
    from evidence_support import steps_event

    campaign = FakeCampaign(tmp_path)
    run = FakeRun([[0.2] * 20], run_end=True)
    run.events = [steps_event(run, [0.2] * 21, first=40, begin_s=9.0)]
    campaign.add(axes(), run)
    row = only_row(campaign)
    assert row["images_per_s"] == pytest.approx(160.0)
    assert pd.isna(row["time_s"])
    assert "steps_missing" in codes(row)


def test_the_newest_success_counts_for_its_repeat(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    campaign.add(axes(), FakeRun([[0.2] * 41]), attempt=1)
    campaign.add(axes(), FakeRun([[0.1] * 41], exit_code=1), attempt=2)
    campaign.save()
    table = collect(campaign.layout)
    assert table["latest"].tolist() == [False, True]
    assert table["counts"].tolist() == [True, False]


def test_files_hold_what_is_returned(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    for repeat in range(3):
        campaign.add(axes(), FakeRun([[1.0] + [0.2] * 40]), repeat=repeat)
    campaign.save()
    calls: list[tuple[int, int]] = []
    table = collect(campaign.layout, lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls) and calls[-1] == (3, 3)
    pd.testing.assert_frame_equal(pd.read_parquet(campaign.layout.runs_parquet), table)
    read = pd.read_csv(campaign.layout.runs_csv)
    assert read["images_per_s"].tolist() == pytest.approx(table["images_per_s"].tolist())
    steps = pd.read_parquet(campaign.layout.steps_parquet)
    assert len(steps) == 3 * 41
    assert steps["part"].value_counts().to_dict() == {"steady": 120, "warmup": 3}
    assert steps["occupancy"].isna().all()
    assert sorted(p.name for p in campaign.layout.root.iterdir()) == [
        "campaign.json",
        "collected.json",
        "runs",
        "runs.csv",
        "runs.parquet",
        "steps.parquet",
    ]


@pytest.mark.parametrize(("repeats", "counts"), [(1, [True, False]), (2, [True, True])])
def test_a_packs_own_canary_run_is_no_repeat(repeats: int, counts: list[bool], tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, repeats=repeats)
    for repeat, step_s in enumerate((0.2, 0.4)):
        layout = campaign.add(axes(), FakeRun([[1.0] + [step_s] * 40]), repeat=repeat)
    canaries = tuple(AttemptKey(layout.root.parent.name, repeat, 1) for repeat in (0, 1))
    group = Group(kind="pack", name="g1", number=1, job_name="j", attempts=canaries, canaries=canaries)
    path = campaign.layout.group("g1").meta
    path.parent.mkdir(parents=True)
    path.write_text(group.model_dump_json())
    damaged = campaign.layout.group("g2").meta
    damaged.parent.mkdir()
    damaged.write_text('{"kind": "pa')
    campaign.save()
    table = collect(campaign.layout)
    assert table["counts"].tolist() == counts
    (result,) = point_results(table)
    assert result.runs == sum(counts)
    if repeats == 1:
        assert result.rate.value == pytest.approx(160.0)


def test_python_looks_for_circles_again_once_a_table_is_made(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    campaign.add(axes(), FakeRun([[0.5] * 30]))
    campaign.save()
    meanwhile: list[bool] = []
    collect_rows(campaign.layout, lambda *_: meanwhile.append(gc.isenabled()))
    assert meanwhile == [False]
    assert gc.isenabled()
    campaign.layout.meta.unlink()
    campaign.layout.collected.unlink()
    with pytest.raises(UserError, match="no campaign here"):
        collect_rows(campaign.layout)
    assert gc.isenabled()
