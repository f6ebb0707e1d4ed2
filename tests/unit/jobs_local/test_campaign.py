"""campaign.json: made, widened, and never mixed up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from simulation_support import CLUSTER, campaign

from harness.analysis.campaigns import attempts
from harness.errors import UserError
from harness.files import write_atomically
from harness.jobs import campaign as jobs_campaign
from harness.jobs.campaign import load_campaign, merge, open_campaign, read_campaign, read_cluster
from harness.jobs.ledger import Ledger
from harness.layout import CampaignLayout
from harness.model.axes import Axes, point_id
from harness.model.campaign import Campaign, PlannedPoint, Task
from harness.model.campaign_file import campaign_text
from harness.model.job import job_name
from harness.model.ledger import AttemptKey


def with_base(plan: Campaign, **axes: object) -> Campaign:
    """The same plan with some axes set for every point."""
    points = {}
    for old in plan.points.values():
        new = Axes.model_validate({**old.axes.model_dump(), **axes})
        points[point_id(new)] = PlannedPoint(axes=new, placement=old.placement)
    tasks = tuple(Task(point_id=p, repeat=r) for r in range(plan.repeats) for p in points)
    return plan.model_copy(update={"points": points, "tasks": tasks})


def test_a_campaign_is_written_and_read_back(tmp_path: Path) -> None:
    layout, plan = CampaignLayout(tmp_path / "c"), campaign()
    made = open_campaign(layout, plan, CLUSTER)
    assert made == load_campaign(layout)
    assert made.model_copy(update={"uid": ""}) == plan
    assert read_cluster(layout.cluster) == CLUSTER


def test_two_campaigns_of_one_name_do_not_share_job_names(tmp_path: Path) -> None:
    one, other = (open_campaign(CampaignLayout(tmp_path / name), campaign(), CLUSTER) for name in ("a", "b"))
    point = next(iter(one.points))
    assert job_name(one.name, point, 0, 1, one.uid) != job_name(other.name, point, 0, 1, other.uid)
    assert open_campaign(CampaignLayout(tmp_path / "a"), campaign(points=3), CLUSTER).uid == one.uid


def test_what_was_begun_is_kept_and_what_was_not_is_dropped(tmp_path: Path) -> None:
    layout, old, new = CampaignLayout(tmp_path), campaign(points=3), campaign(points=2, first=3)
    open_campaign(layout, old, CLUSTER)
    begun = old.tasks[0]
    with Ledger(layout.ledger, lambda: 1.0) as ledger:
        ledger.intent([AttemptKey(begun.point_id, begun.repeat, 1)], "h", "/s")
    merged = open_campaign(layout, new.model_copy(update={"created_unix_s": 99.0}), CLUSTER)
    assert merged.tasks == (*new.tasks, begun)
    assert set(merged.points) == {*new.points, begun.point_id}
    assert merged.created_unix_s == old.created_unix_s
    assert load_campaign(layout) == merged


def test_what_has_a_directory_is_kept_where_its_lines_are_damaged(tmp_path: Path) -> None:
    layout, old, new = CampaignLayout(tmp_path), campaign(points=3, repeats=2), campaign(points=2, first=3)
    open_campaign(layout, old, CLUSTER)
    begun = old.tasks[-2]
    layout.attempt(begun.point_id, begun.repeat, 1).root.mkdir(parents=True)
    layout.ledger.write_bytes(b"\x00\xff{garbage\n")
    assert open_campaign(layout, new, CLUSTER).tasks == (*new.tasks, begun)


def test_fewer_repeats_keep_the_measured_ones() -> None:
    old, new = campaign(repeats=3), campaign(repeats=1)
    merged = merge(old, new, set(old.tasks))
    assert (merged.repeats, set(merged.tasks)) == (3, set(old.tasks))
    assert merged.tasks[: len(new.tasks)] == new.tasks


def test_an_axis_that_changed_its_one_value_now_varies() -> None:
    old, new = campaign(points=2), with_base(campaign(points=2), batch_size=64, options={"consume_s": 0.5})
    assert merge(old, new, set(old.tasks)).varied == ("prefetch", "batch_size", "options.consume_s")
    assert merge(old, new, set()).varied == ("prefetch",)


def test_another_cluster_is_refused(tmp_path: Path) -> None:
    layout = CampaignLayout(tmp_path)
    open_campaign(layout, campaign(), CLUSTER)
    with pytest.raises(UserError, match="on cluster 'far', not 'near'; give this campaign another name"):
        open_campaign(layout, campaign().model_copy(update={"cluster": "near"}), CLUSTER)


@pytest.mark.parametrize("text", ["", "{", '{"name": 1}'])
def test_a_damaged_campaign_is_not_overwritten(text: str, tmp_path: Path) -> None:
    layout = CampaignLayout(tmp_path)
    layout.meta.write_text(text)
    with pytest.raises(UserError, match=r"campaign\.json cannot be read"):
        open_campaign(layout, campaign(), CLUSTER)
    assert layout.meta.read_text() == text


def test_an_unknown_campaign_names_the_nearest(tmp_path: Path) -> None:
    open_campaign(CampaignLayout(tmp_path / "quickstart"), campaign(), CLUSTER)
    with pytest.raises(UserError, match="no campaign 'quikstart'.*did you mean 'quickstart'"):
        load_campaign(CampaignLayout(tmp_path / "quikstart"))


def test_a_campaign_written_in_lines_reads_back_as_it_was(tmp_path: Path) -> None:
    planned = campaign(points=3, repeats=2)
    write_atomically(tmp_path / "campaign.json", campaign_text(planned))
    assert read_campaign(tmp_path / "campaign.json") == planned
    document = json.loads((tmp_path / "campaign.json").read_text())
    assert list(document["points"]) == list(planned.points)
    assert all("parallel_threads" not in point["axes"] for point in document["points"].values())


def test_points_of_a_very_large_campaign_lie_in_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_campaign, "SHARD_ABOVE", 2)
    large, small = CampaignLayout(tmp_path / "large"), CampaignLayout(tmp_path / "small")
    planned = campaign(points=3)
    open_campaign(large, planned, CLUSTER)
    open_campaign(small, planned.model_copy(update={"points": dict(list(planned.points.items())[:2])}), CLUSTER)
    point_id = next(iter(planned.points))
    attempt = large.attempt(point_id, 0, 1)
    assert attempt.root == large.root / "runs" / point_id[:2] / point_id / "r0a1"
    assert small.attempt(point_id, 0, 1).root == small.root / "runs" / point_id / "r0a1"
    for layout in (large, small):
        found = layout.attempt(point_id, 0, 1)
        found.root.mkdir(parents=True)
        assert [attempt.layout.root for attempt in attempts(layout)] == [found.root]
        assert found.campaign_root == layout.root
