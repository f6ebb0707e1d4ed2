"""A second collection reads only what has changed, and gives the same tables."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis import collect as collecting
from harness.analysis import incremental, pieces, reading
from harness.model.axes import Axes


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the attempts whose evidence is read."""
    names: list[str] = []
    original = reading.read_run

    def noted(layout):  # type: ignore[no-untyped-def]
        names.append(layout.root.name)
        return original(layout)

    monkeypatch.setattr(reading, "read_run", noted)
    return names


@pytest.fixture
def campaign(tmp_path: Path) -> FakeCampaign:
    made = FakeCampaign(tmp_path, "c", repeats=3)
    for repeat in range(3):
        run = FakeRun([[1.0] + [0.2 + 0.001 * repeat] * 20] * 2, occupancy=[3] * 21, exit_code=repeat // 2)
        made.add(Axes(workload="replay", ranks_per_node=2, cpu_cores=2, steps_timed=20), run, repeat=repeat)
    made.save()
    return made


def test_unchanged_evidence_is_not_read_again(campaign: FakeCampaign, read: list[str]) -> None:
    first = collecting.collect(campaign.layout)
    files = [campaign.layout.runs_csv, campaign.layout.runs_parquet]
    before, steps = [f.read_bytes() for f in files], pd.read_parquet(campaign.layout.steps_parquet)
    assert sorted(read) == ["r0a1", "r1a1", "r2a1"]
    for _ in range(2):
        read.clear()
        pd.testing.assert_frame_equal(collecting.collect(campaign.layout), first)
        assert read == []
        assert [f.read_bytes() for f in files] == before
        pd.testing.assert_frame_equal(pd.read_parquet(campaign.layout.steps_parquet), steps)


def test_what_changed_is_read(campaign: FakeCampaign, read: list[str]) -> None:
    collecting.collect(campaign.layout)
    read.clear()
    point = next(iter(campaign.points))
    events = campaign.layout.attempt(point, 1, 1).events(0)
    events.write_text(events.read_text() + '{"event":"torn\n')
    campaign.add(campaign.points[point].axes, FakeRun([[1.0] + [0.2] * 20] * 2), repeat=2, attempt=2)
    table = collecting.collect(campaign.layout)
    assert sorted(read) == ["r1a1", "r2a2"]
    assert list(table["counts"]) == [True, True, False, True]
    steps = pd.read_parquet(campaign.layout.steps_parquet)
    assert len(steps) == 4 * 2 * 21
    assert "events_torn" in table["findings"][1]


@pytest.mark.parametrize("damage", ["program", "record", "runs", "steps", "gone"])
def test_a_doubtful_memory_is_not_relied_on(
    campaign: FakeCampaign, read: list[str], damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = collecting.collect(campaign.layout)
    read.clear()
    layout = campaign.layout
    if damage == "program":
        monkeypatch.setattr(incremental, "program_digest", lambda: "another version")
    elif damage == "record":
        layout.collected.write_text(layout.collected.read_text()[:-20])
    elif damage == "runs":
        pd.read_parquet(layout.runs_parquet).assign(images_per_s=1.0).to_parquet(layout.runs_parquet)
    elif damage == "steps":
        layout.steps_parquet.write_bytes(b"PAR1 nonsense")
    else:
        layout.steps_parquet.unlink()
    pd.testing.assert_frame_equal(collecting.collect(layout), first)
    assert len(read) == 3
    assert len(pd.read_parquet(layout.steps_parquet)) == 3 * 2 * 21


def test_a_collection_cut_off_leaves_no_memory(
    campaign: FakeCampaign, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    collecting.collect(campaign.layout)

    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(collecting, "write", full)
    with pytest.raises(OSError, match="disk full"):
        collecting.collect(campaign.layout)
    assert not campaign.layout.collected.exists()


def test_several_processes_give_the_same_tables(campaign: FakeCampaign, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = collecting.collect(campaign.layout)
    steps = pd.read_parquet(campaign.layout.steps_parquet)
    campaign.layout.collected.unlink()
    monkeypatch.setattr(pieces, "PARALLEL_FROM", 1)
    monkeypatch.setattr(pieces, "PIECE_ATTEMPTS", 2)
    monkeypatch.setattr(pieces.os, "sched_getaffinity", lambda _pid: {0, 1})
    pd.testing.assert_frame_equal(collecting.collect(campaign.layout), alone)
    pd.testing.assert_frame_equal(pd.read_parquet(campaign.layout.steps_parquet), steps)


def settle(campaign: FakeCampaign) -> None:
    """Directories that changed long ago: they show every later change."""
    for directory in [campaign.layout.runs, *(path for path in campaign.layout.runs.rglob("*") if path.is_dir())]:
        os.utime(directory, (1e9, 1e9))


def test_that_nothing_changed_is_known_without_looking_for_attempts(
    campaign: FakeCampaign, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(campaign)
    first = collecting.collect(campaign.layout)
    stamps = [path.stat().st_mtime_ns for path in (campaign.layout.runs_csv, campaign.layout.collected)]
    with monkeypatch.context() as patched:
        patched.setattr(collecting, "attempts", lambda _layout: pytest.fail("looked for attempts"))
        pd.testing.assert_frame_equal(collecting.collect(campaign.layout), first)
    assert [path.stat().st_mtime_ns for path in (campaign.layout.runs_csv, campaign.layout.collected)] == stamps
    read.clear()
    point = next(iter(campaign.points))
    events = campaign.layout.attempt(point, 1, 1).events(1)
    events.write_text(events.read_text() + "torn\n")
    collecting.collect(campaign.layout)
    assert read == ["r1a1"]


def test_a_new_attempt_shows_in_its_points_directory(campaign: FakeCampaign, read: list[str]) -> None:
    settle(campaign)
    collecting.collect(campaign.layout)
    read.clear()
    point = next(iter(campaign.points))
    campaign.add(campaign.points[point].axes, FakeRun([[1.0] + [0.2] * 20] * 2), repeat=2, attempt=2)
    assert len(collecting.collect(campaign.layout)) == 4
    assert read == ["r2a2"]


def test_a_young_directory_is_looked_into_again(campaign: FakeCampaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental.time, "time_ns", lambda: 10**18 + 2 * 10**9)
    for changed_s, settled_ns in ((10**9, 0), (10**9 - 1, 10**18 - 10**9)):
        os.utime(campaign.layout.runs, (changed_s, changed_s))
        assert incremental.settled(campaign.layout.runs) == settled_ns


def test_a_damaged_record_of_the_last_collection_counts_as_none(campaign: FakeCampaign, read: list[str]) -> None:
    first = collecting.collect(campaign.layout)
    whole = campaign.layout.collected.read_bytes()
    record = json.loads(whole)
    record["attempts"][0][1] = 7
    damaged = [b"", b"[]", whole[:-9], whole.replace(b"r0a1", b"r0a2", 1), json.dumps(record).encode()]
    for content in damaged:
        campaign.layout.collected.write_bytes(content)
        read.clear()
        pd.testing.assert_frame_equal(collecting.collect(campaign.layout), first)
        assert sorted(read) == ["r0a1", "r1a1", "r2a1"]
