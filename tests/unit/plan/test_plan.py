"""A campaign: points, refusals, varied axes and the order of the runs."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from harness.config.cluster_file import parse_cluster
from harness.config.sweep_file import parse_sweep
from harness.errors import UserError
from harness.model.campaign import Campaign, Task
from harness.plan.load import plan_from_files
from harness.plan.plan import plan, run_order

LOCAL = parse_cluster(
    "name: here\nscheduler: local\nnode: {cores_per_socket: 4}\nstorage: {hpctmp: {path: /d}}\n", Path("/")
)


def campaign(text: str, **options: object) -> Campaign:
    return plan(parse_sweep("name: x\n" + text), LOCAL, now_unix_s=5.0, **options)  # type: ignore[arg-type]


def test_points_refusals_and_counts() -> None:
    result = campaign(
        """\
base: {workload: replay}
matrix: {cpu_cores: [1, 2, 4, 8], workers: [1, 2]}
exclude: [{cpu_cores: 4, workers: 2}]
include: [{cpu_cores: 1, workers: 1, echo: 1}]
derive: {cpu_cores: "1 if cpu_cores == 2 else cpu_cores"}
repeats: 3
"""
    )
    rows = [(p.axes.cpu_cores, p.axes.workers) for p in result.points.values()]
    assert rows == [(1, 1), (1, 2), (4, 1)]
    assert [(r.axes.cpu_cores, r.axes.workers, r.code) for r in result.refusals] == [
        (8, 1, "cores_per_node"),
        (8, 2, "cores_per_node"),
    ]
    assert (result.excluded, result.duplicates) == (1, 2)
    assert (result.name, result.sweep, result.cluster, result.created_unix_s) == ("x", "x", "here", 5.0)
    assert len(result.tasks) == 9
    assert result == Campaign.model_validate_json(result.model_dump_json())


def test_varied_axes_leave_out_what_follows_from_others() -> None:
    result = campaign(
        """\
base: {workload: replay}
matrix: {workers: [1, 2], nodes: [1], cpu_cores: [1, 2]}
zip: {prefetch: [1, 2], batch_interval: [1, 2]}
when: [{where: {workers: 2}, set: {storage: hpctmp, seed: 3}}]
derive: {parallel_threads: cpu_cores}
include: [{workers: 1, cpu_cores: 1, prefetch: 1, batch_interval: 1, batch_size: 7}]
"""
    )
    assert result.varied == ("workers", "cpu_cores", "prefetch", "batch_interval")


def test_an_axis_that_only_an_include_varies_is_varied() -> None:
    text = "base: {workload: replay}\nmatrix: {workers: [1]}\ninclude: [{workers: 2, seed: 1}, {workers: 2, seed: 2}]\n"
    assert campaign(text).varied == ("workers", "seed")


def test_options_are_axes_like_others() -> None:
    text = "base: {workload: replay}\nmatrix: {options.produce_s: [0.01, 0.02]}\n"
    result = campaign(text)
    assert result.varied == ("options.produce_s",)
    assert [p.axes.options for p in result.points.values()] == [{}, {"produce_s": 0.02}]


def test_each_block_runs_every_point_once_in_an_order_of_its_own() -> None:
    ids = [f"{n:016x}" for n in range(50)]
    tasks = run_order(ids, repeats=3, seed=1)
    blocks = [[t.point_id for t in tasks if t.repeat == repeat] for repeat in range(3)]
    assert [t.repeat for t in tasks] == [0] * 50 + [1] * 50 + [2] * 50
    assert all(sorted(block) == ids for block in blocks)
    assert all(one != two for one, two in itertools.combinations([ids, *blocks], 2))
    assert run_order(ids, repeats=3, seed=2) != tasks


def test_the_order_is_pinned_and_survives_new_points() -> None:
    # sha256sum of 1/0/a begins with da, of 1/0/b with 92, of 1/0/c with 0a
    assert [t.point_id for t in run_order("abc", 1, 1)] == ["c", "b", "a"]
    more = [t.point_id for t in run_order("abcdefg", 1, 1)]
    assert [point for point in more if point in "abc"] == ["c", "b", "a"]


def test_only_keeps_the_points_where_it_holds() -> None:
    text = "base: {workload: replay}\nmatrix: {workers: [1, 2, 3]}\n"
    assert [p.axes.workers for p in campaign(text, only="workers != 2").points.values()] == [1, 3]
    with pytest.raises(UserError, match="--only 'workers > 9' holds for none of the 3 points of x"):
        campaign(text, only="workers > 9")
    with pytest.raises(UserError, match="--only: an expression has no name 'worker'; did you mean 'workers'"):
        campaign(text, only="worker > 9")
    with pytest.raises(UserError, match="no name 'torch'; .*; text stands in quotes: 'torch'$"):
        campaign(text, only="framework == torch")


def test_nothing_left_is_an_error_that_says_why() -> None:
    text = "base: {workload: replay}\nmatrix: {workers: [1, 2]}\nexclude: [{where: 'True'}]\n"
    with pytest.raises(UserError, match="expands to nothing: all 2 combinations are excluded"):
        campaign(text)
    with pytest.raises(UserError) as caught:
        campaign("base: {workload: replay}\nmatrix: {cpu_cores: [8, 16], storage: [hpctmp, tape]}\n")
    message = str(caught.value)
    assert "none of 4 points can run on cluster here:" in message
    assert "4 × such as: needs 8 cores on a node; a node of here has 4" in message
    assert caught.value.exit_code == 2


def test_from_files_with_overrides(tmp_path: Path) -> None:
    clusters = tmp_path / "configs" / "clusters"
    clusters.mkdir(parents=True)
    (clusters / "local.yml").write_text(
        "name: local\nscheduler: local\nnode: {cores_per_socket: 4}\nstorage: {hpctmp: {path: d}}\n"
    )
    (clusters / "far.yml").write_text(
        "name: far\nscheduler: slurm\nnode: {cores_per_socket: 4}\nstorage: {hpctmp: {path: /d}}\n"
        "queues: {a: {}, b: {}}\nqueue: a\n"
    )
    sweep = tmp_path / "s $(id) 'q'.yml"
    sweep.write_text("name: größe $(id)\nbase: {workload: replay}\nmatrix: {workers: [1, 2]}\n")
    here, cluster = plan_from_files(sweep, None, tmp_path, 1.0)
    assert (here.name, here.sweep_file, cluster.name) == ("größe $(id)", str(sweep), "local")
    assert {p.placement.data_path for p in here.points.values()} == {str(tmp_path / "d")}
    there, _ = plan_from_files(sweep, "far", tmp_path, 1.0, ["workers=3", "repeats=2"], queue="b", campaign_name="c")
    assert there.name == "c"
    assert [(p.axes.workers, p.placement.queue) for p in there.points.values()] == [(3, "b")]
    assert [t.repeat for t in there.tasks] == [0, 1]
    assert plan_from_files(sweep, "far", tmp_path, 1.0)[0].name == "größe $(id)-far"
    with pytest.raises(UserError, match="--campaign: 'a/b' cannot name a directory"):
        plan_from_files(sweep, None, tmp_path, 1.0, campaign_name="a/b")
    assert all(isinstance(task, Task) for task in there.tasks)


def test_more_runs_than_anybody_means_are_refused_before_they_fill_the_memory() -> None:
    with pytest.raises(UserError, match=r"2 points × 999,999,999 repeats are 1,999,999,998 runs; .* 500,000"):
        campaign("base: {workload: replay}\nmatrix: {workers: [1, 2]}\nrepeats: 999999999\n")
