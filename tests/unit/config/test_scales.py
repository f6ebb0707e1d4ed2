"""``scales:`` of a sweep file: what a scale replaces, what it adds, what it leaves, and what is refused in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.scales import scaled
from harness.config.sweep_file import parse_sweep
from harness.errors import ConfigError, UserError
from harness.model.sweep import Sweep
from harness.plan.expand import expand

FILE = """\
name: threads
cluster: nus-volta
base: {workload: resnet20_cifar10, dataset: cifar10, gpus_per_rank: 1}
matrix:
  cpu_cores: [5, 10]
  framework: [tensorflow, torch]
when:
  - where: {framework: torch}
    set: {workers: 8}
derive: {parallel_threads: "cpu_cores"}
exclude:
  - {cpu_cores: 5, framework: torch}
steps: {warmup: auto, timed: 500}
repeats: 3
walltime: 2h
scales:
  smoke:
    cluster: local
    base: {dataset: "photos:cifar10", gpus_per_rank: 0, parallel_threads: 1}
    matrix: {cpu_cores: [1, 2]}
    when:
      - where: {framework: torch}
        set: {workers: 1}
    exclude:
      - where: "cpu_cores == 2 and framework == 'tensorflow'"
    steps: {timed: 5}
    repeats: 1
    walltime: 5m
    data:
      "photos:cifar10": {train: 100, test: 10}
  wide:
    matrix: {workers: [0, 1]}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        parse_sweep(text, "s.yml")
    return str(raised.value).splitlines()


def points(sweep: Sweep) -> list[dict]:
    return expand(sweep).combinations


def test_without_a_scale_a_file_means_what_it_meant() -> None:
    full = parse_sweep(FILE)
    bare = parse_sweep(FILE.partition("scales:")[0])
    assert full.model_copy(update={"scales": {}}) == bare


def test_a_scale_replaces_adds_and_leaves() -> None:
    smoke = scaled(parse_sweep(FILE), "smoke")
    assert (smoke.name, smoke.cluster, smoke.repeats, smoke.walltime_s) == ("threads-smoke", "local", 1, 300)
    assert smoke.data == {"photos:cifar10": {"train": 100, "test": 10}}
    found = {(p["cpu_cores"], p["framework"]): p for p in points(smoke)}
    # the file's exclude holds for nothing here; the scale's own takes one away
    assert set(found) == {(1, "tensorflow"), (1, "torch"), (2, "torch")}
    assert {p["dataset"] for p in found.values()} == {"photos:cifar10"}
    assert {(p["steps_timed"], p.get("steps_warmup")) for p in found.values()} == {(5, None)}
    assert {p["parallel_threads"] for p in found.values()} == {1}, "a fixed value wins over a derived one"
    assert found[1, "torch"]["workers"] == 1 and "workers" not in found[1, "tensorflow"]
    assert not expand(smoke).notes, "conditions meant for the full size are no mistake at another"


def test_an_axis_that_nothing_varies_is_varied_by_a_scale() -> None:
    wide = scaled(parse_sweep(FILE), "wide")
    assert wide.repeats == 3 and wide.cluster == "nus-volta"
    assert sorted({p["workers"] for p in points(wide)}) == [0, 1]
    assert len(points(wide)) == 6


def test_an_axis_of_one_part_stays_with_it() -> None:
    text = """\
name: parts
base: {workload: dcgan_mnist}
parts:
  - matrix: {workers: [1, 2, 4]}
  - matrix: {echo: [2, 4]}
scales:
  smoke: {matrix: {workers: [0, 1]}}
"""
    found = points(scaled(parse_sweep(text), "smoke"))
    assert [(p.get("workers"), p.get("echo")) for p in found] == [(0, None), (1, None), (None, 2), (None, 4)]


def test_an_unknown_scale_names_the_known_ones() -> None:
    with pytest.raises(UserError, match="has no scale 'smok'; did you mean 'smoke'"):
        scaled(parse_sweep(FILE, "s.yml"), "smok")
    with pytest.raises(UserError, match="s.yml has no scale 'smoke'; it has no `scales:`"):
        scaled(parse_sweep("name: x\nbase: {workload: replay}\n", "s.yml"), "smoke")


def test_mistakes_in_scales_are_found_whichever_is_used() -> None:
    head = "name: x\nbase: {workload: replay}\n"
    found = problems(head + "scales:\n  smoke:\n    bas: {}\n    matrix: {cpu_core: [1]}\n    walltime: 12:00:00\n")
    assert [line.split(": ", 1)[0] for line in found] == ["s.yml:5", "s.yml:6", "s.yml:7"]
    assert "unknown key 'bas' in scale smoke; did you mean 'base'" in found[0]
    assert "unknown axis 'cpu_core'" in found[1]


def test_mistakes_in_data_are_found() -> None:
    head = "name: x\nbase: {workload: replay}\n"
    found = problems(head + "data:\n  mnist: {train: 1}\n  digits:mnist: {trains: 1, test: 0}\n")
    assert "'mnist' is no data set that can be made" in found[0] and "digits:mnist" in found[0]
    assert "unknown key 'trains' in data of digits:mnist; did you mean 'train'" in found[1]
    assert "test: 0 is not allowed" in found[2]


STUDIES = [
    "nus_cpu_cores",
    "nus_encoding",
    "nus_keras_workers",
    "nus_storage",
    "alcf_threads_prefetch",
    "alcf_horovod_scaling",
    "dell_pipeline_order",
    "dell_scaling",
    "afrl_batch_interval",
    "aws_workers",
    "aws_out_of_band",
    "echoing",
    "mission",
]
SWEEPS = Path(__file__).parents[3] / "configs" / "sweeps"
GUIDE = (SWEEPS.parents[1] / "docs" / "studies.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", STUDIES)
def test_each_study_runs_here_at_smoke_scale(name: str) -> None:
    """Every point of it, on the local cluster, without a GPU, in few steps, from data that can be made."""
    from harness.plan.load import plan_from_files

    path = SWEEPS / f"{name}.yml"
    campaign, cluster = plan_from_files(path, None, SWEEPS.parents[1], 0.0, scale="smoke")
    assert (cluster.name, campaign.name, campaign.refusals) == ("local", f"{name}-smoke", ())
    assert 2 <= len(campaign.points) <= 10 and campaign.repeats == 1 and not campaign.notes
    for point in campaign.points.values():
        assert point.axes.steps_timed <= 40 and point.axes.gpus_per_rank == 0
        assert point.axes.dataset is not None and ":" in point.axes.dataset


@pytest.mark.parametrize("name", STUDIES)
def test_each_study_is_whole_on_its_own_cluster(name: str) -> None:
    """No point refused, none the same as another, and the head's cost is the plan's."""
    from harness.plan.load import plan_from_files

    path = SWEEPS / f"{name}.yml"
    campaign, cluster = plan_from_files(path, None, SWEEPS.parents[1], 0.0)
    assert cluster.name != "local" and campaign.refusals == () and campaign.duplicates == 0 and not campaign.notes
    placements = [campaign.points[task.point_id].placement for task in campaign.tasks]
    hours = sum(p.walltime_s * p.nodes for p in placements) / 3600
    head = " ".join(line.strip("# ") for line in path.read_text().splitlines() if line.startswith("#"))
    cost = f"{hours:,.1f}".removesuffix(".0")
    assert f"{len(placements):,} runs" in head and f"{cost} node-hours" in head
    (row,) = (line for line in GUIDE.splitlines() if line.startswith(f"| `{name}` |"))
    assert row.endswith(f"| {cost} |")
    assert "Smoke:" in head
