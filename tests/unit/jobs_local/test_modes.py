"""How tasks become jobs: the rule that chooses, the words that say so, and the limits that split."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from jobs_support import make_cluster, make_placement
from simulation_support import campaign

from harness.errors import UserError
from harness.jobs.modes import How, Plan, plan_batches, quota_of, throttle_of
from harness.model.campaign import Campaign
from harness.model.cluster import Cluster, Directives, Queue


def on_queue(scheduler: str = "slurm", **limits: Any) -> Cluster:
    return make_cluster(scheduler, queue="q", queues={"q": Queue(**limits)})


def planned(cluster: Cluster, work: Campaign, **wishes: Any) -> Plan:
    return plan_batches(work, cluster, work.tasks, How(**wishes), "seed")


def shape(plan: Plan) -> list[tuple[str, int]]:
    return [(batch.kind, len(batch.tasks)) for batch in plan.batches]


@pytest.mark.parametrize(
    ("cluster", "tasks", "walltime_s", "expected", "why"),
    [
        (make_cluster("local"), 50, 600, [("single", 1)] * 50, "no queue to wait in"),
        (on_queue(), 9, 600, [("single", 1)] * 9, "fewer than 10"),
        (on_queue(), 10, 600, [("array", 10)], "one array is one submission"),
        (on_queue(max_array_size=4), 10, 600, [("array", 3), ("array", 3), ("array", 4)], "one array"),
        (on_queue(max_array_size=1), 10, 600, [("single", 1)] * 10, "takes no arrays"),
        (on_queue(max_queued_jobs=8), 11, 600, [("array", 3), ("array", 4), ("array", 4)], "one array"),
        (on_queue(max_queued_jobs=2), 12, 600, [("pack", 13)], "holds 2 jobs of yours, and 12 runs are many more"),
        (on_queue(), 12, 300, [("pack", 13)], "at most 00:05:00 are shorter"),
        (on_queue(max_walltime_s=3600), 12, 300, [("pack", 7), ("pack", 7)], "shorter"),
    ],
)
def test_what_is_chosen_and_why(
    cluster: Cluster, tasks: int, walltime_s: int, expected: list[tuple[str, int]], why: str
) -> None:
    plan = planned(cluster, campaign(points=tasks, walltime_s=walltime_s))
    assert shape(plan) == expected
    assert why in plan.why


def test_the_words_name_the_calls() -> None:
    work = campaign(points=12)
    assert planned(on_queue(max_array_size=6), work, mode="array").words == (
        "2 arrays, 2 submissions, as --mode array says"
    )
    assert planned(on_queue(), work, mode="pack").words == (
        "1 pack, 1 canary run added, 1 submission, as --mode pack says"
    )


def test_only_runs_with_equal_requests_share_a_job() -> None:
    work = campaign(points=12)
    points = dict(work.points)
    for name in list(points)[:5]:
        other = points[name].placement.model_copy(update={"cores_per_node": 4, "walltime_s": 60})
        points[name] = points[name].model_copy(update={"placement": other})
    for name in list(points)[5:7]:
        later = points[name].placement.model_copy(update={"walltime_s": 60, "data_path": "/elsewhere"})
        points[name] = points[name].model_copy(update={"placement": later})
    plan = planned(on_queue(), work.model_copy(update={"points": points}), mode="array")
    assert shape(plan) == [("array", 5), ("array", 7)]


@pytest.mark.parametrize("tasks", range(2, 30))
def test_no_array_of_one_element(tasks: int) -> None:
    plan = planned(on_queue(max_array_size=7), campaign(points=tasks), mode="array")
    assert all(2 <= len(batch.tasks) <= 7 for batch in plan.batches)
    assert Counter(task for batch in plan.batches for task in batch.tasks) == Counter(campaign(points=tasks).tasks)


def test_one_run_alone_is_no_group() -> None:
    assert shape(planned(on_queue(), campaign(points=1), mode="array")) == [("single", 1)]
    assert shape(planned(on_queue(), campaign(points=1), mode="pack")) == [("single", 1)]


def test_a_pack_is_in_random_order_with_one_points_repeats_at_its_ends() -> None:
    work = campaign(points=6, repeats=2)
    (batch,) = planned(on_queue(), work, mode="pack").batches
    assert Counter(batch.tasks) == Counter(work.tasks)
    assert list(batch.tasks) != list(work.tasks)
    first, last = (batch.tasks[place] for place in batch.canaries)
    assert (first, last) == (batch.tasks[0], batch.tasks[-1])
    assert first.point_id == last.point_id and first.repeat != last.repeat
    assert batch.extra == 0
    assert planned(on_queue(), work, mode="pack").batches == (batch,)


def test_without_repeats_a_point_gets_one_run_more() -> None:
    work = campaign(points=6)
    (batch,) = planned(on_queue(), work, mode="pack").batches
    assert Counter(batch.tasks[:-1]) == Counter(work.tasks)
    assert (batch.tasks[-1].point_id, batch.tasks[-1].repeat) == (batch.tasks[0].point_id, 1)
    assert (batch.canaries, batch.extra) == ((0, 6), 1)


@pytest.mark.parametrize(("tasks", "max_walltime_s"), [(3, None), (6, 6 * 660)])
def test_a_small_or_a_full_pack_gets_none(tasks: int, max_walltime_s: int | None) -> None:
    (batch,) = planned(on_queue(max_walltime_s=max_walltime_s), campaign(points=tasks), mode="pack").batches
    assert (len(batch.tasks), batch.canaries) == (tasks, ())


def test_packs_keep_within_the_queues_walltime() -> None:
    plan = planned(on_queue(max_walltime_s=2000), campaign(points=10, walltime_s=600), mode="pack")
    assert [len(batch.tasks) for batch in plan.batches] == [2, 3, 2, 3]


def test_a_site_without_throttles_gets_smaller_arrays() -> None:
    old = make_cluster("pbs", directives=Directives(array_throttle=False))
    assert throttle_of(old, How(jobs=4)) is None
    assert shape(planned(old, campaign(points=12), mode="array", jobs=4)) == [("array", 4)] * 3
    new = make_cluster("pbs")
    assert throttle_of(new, How(jobs=4)) == 4
    assert shape(planned(new, campaign(points=12), mode="array", jobs=4)) == [("array", 12)]


def test_no_arrays_on_this_machine() -> None:
    with pytest.raises(UserError, match="--mode single or --mode pack"):
        planned(make_cluster("local"), campaign(), mode="array")


def test_a_users_own_limit_beats_the_queues() -> None:
    plan = planned(on_queue(max_queued_jobs=100), campaign(points=12), mode="array", max_queued=6)
    assert shape(plan) == [("array", 3)] * 4


def test_the_queue_of_the_placement_counts_and_not_the_clusters_own() -> None:
    cluster = make_cluster("slurm", queue="q", queues={"q": Queue(max_queued_jobs=2), "other": Queue()})
    placements = [make_placement(queue="other"), make_placement(queue="other")]
    assert quota_of(cluster, How(), placements) is None
    assert quota_of(cluster, How(), [*placements, make_placement()]) == 2
