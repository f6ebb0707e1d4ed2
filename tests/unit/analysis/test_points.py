"""From runs to points to series: repeats, conditions, speed-up."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis import points, scaling
from harness.analysis.collect import collect
from harness.analysis.points import PointResult
from harness.model.axes import Axes


def axes(cores: int, **more: object) -> Axes:
    return Axes(workload="replay", framework="none", cpu_cores=cores, steps_timed=40, **more)  # type: ignore[arg-type]


def run(step_s: float, **more: object) -> FakeRun:
    return FakeRun([[1.0] + [step_s] * 40], **more)  # type: ignore[arg-type]


def results_of(campaign: FakeCampaign) -> list[PointResult]:
    campaign.save()
    return points.point_results(collect(campaign.layout))


def test_repeats_become_one_point_with_an_interval(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    for repeat, step_s in enumerate((0.1, 0.102, 0.104)):
        campaign.add(axes(1), run(step_s), repeat=repeat)
    (result,) = results_of(campaign)
    assert result.runs == 3
    assert result.rate.value == pytest.approx(32 / (0.1 * 0.102 * 0.104) ** (1 / 3))
    assert result.rate.kind == "between"
    assert result.rate.low < 32 / 0.104 and result.rate.high > 32 / 0.1
    assert result.time.value == pytest.approx(40 * (0.1 * 0.102 * 0.104) ** (1 / 3))
    assert result.trusted


def test_runs_under_unlike_conditions_are_not_merged(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    point = Axes(workload="resnet20_cifar10", framework="torch", steps_timed=40)
    for repeat, version in enumerate(("2.12", "2.13", "2.13")):
        campaign.add(point, run(0.1 if version == "2.12" else 0.05, versions={"torch": version}), repeat=repeat)
    first, second = sorted(results_of(campaign), key=lambda result: result.variant)
    assert (first.variant, first.runs, first.conditions["framework_version"]) == (0, 2, "2.13")
    assert (second.variant, second.runs, second.conditions["framework_version"]) == (1, 1, "2.12")
    found = next(finding for finding in first.findings if finding.code == "provenance_differs")
    assert found.evidence == {"framework_version": ["2.12", "2.13"]}


def test_failed_repeats_are_counted_but_not_averaged(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    campaign.add(axes(1), run(0.1), repeat=0)
    campaign.add(axes(1), run(0.9, exit_code=1), repeat=1)
    (result,) = results_of(campaign)
    assert result.runs == 1
    assert result.rate.value == pytest.approx(320.0)
    assert result.states == {"SUCCEEDED": 1, "FAILED": 1}
    assert {finding.code for finding in result.failures} == {"run_incomplete"}


def test_an_option_left_at_its_default_has_that_value(tmp_path: Path) -> None:
    """Of the point's own workload and pipeline; what they do not have stays without a value."""
    campaign = FakeCampaign(tmp_path)
    campaign.add(axes(1, pipeline="scripted", options={"produce_s": 0.5}), run(0.1))
    (result,) = results_of(campaign)
    assert result.axes["options.produce_s"] == 0.5
    assert result.axes["options.consume_s"] == 0.01
    assert result.axes["options.clock"] == "virtual"
    assert result.axes["options.produce_script"] == "[]"
    assert result.axes["options.optimizer"] is None


def test_the_area_under_the_roc_is_in_the_table(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    judged = {"event": "quality", "t_s": 5.0, "of": "training samples", "samples": 8, "auroc": 0.75}
    campaign.add(axes(1), run(0.1, events=[judged]), repeat=0)
    campaign.add(axes(1), run(0.1), repeat=1)
    campaign.save()
    found = collect(campaign.layout).sort_values("repeat")["auroc"]
    assert found.iloc[0] == 0.75 and found.isna().iloc[1]


def test_a_point_without_any_success_has_no_rate(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    campaign.add(axes(1), run(0.9, exit_code=1))
    (result,) = results_of(campaign)
    assert result.runs == 0
    assert not result.rate.known
    assert not result.trusted


def test_spread_between_runs_is_found(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    for repeat, step_s in enumerate((0.1, 0.15)):
        campaign.add(axes(1), run(step_s), repeat=repeat)
    (result,) = results_of(campaign)
    (found,) = [finding for finding in result.findings if finding.code == "spread_between_runs"]
    assert str(found).startswith("repeats of a point differ much (spread 40%, runs 2)")


def test_speedup_and_efficiency_along_an_axis(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, varied=("cpu_cores", "storage"))
    for storage in ("hpctmp", "scratch"):
        for cores, step_s in ((1, 0.2), (2, 0.1), (4, 0.08)):
            for repeat in range(2):
                slower = 1 + 0.02 * repeat
                campaign.add(axes(cores, storage=storage), run(step_s * slower), repeat=repeat)
    series = scaling.series_along(results_of(campaign), campaign.varied, "cpu_cores")
    assert [one.key for one in series] == [{"storage": "hpctmp"}, {"storage": "scratch"}]
    assert [step.x for step in series[0].steps] == [1, 2, 4]
    assert [step.speedup.value for step in series[0].steps] == pytest.approx([1, 2, 2.5])
    assert [step.efficiency.value for step in series[0].steps] == pytest.approx([1, 1, 0.625])
    for step in series[0].steps:
        ends = [end * series[0].steps[0].x / step.x for end in (step.speedup.low, step.speedup.high)]
        assert [step.efficiency.low, step.efficiency.high] == pytest.approx(ends)


def test_derived_axes_split_no_series(tmp_path: Path) -> None:
    """cpu_cores = min(threads, 4) follows threads; the data set follows the storage."""
    campaign = FakeCampaign(tmp_path, varied=("parallel_threads", "cpu_cores", "storage", "dataset"))
    for storage in ("hpctmp", "scratch"):
        for threads in (1, 4, 16):
            point = axes(min(threads, 4), parallel_threads=threads, storage=storage, dataset=f"synthetic:{storage}")
            campaign.add(point, run(0.1))
    results = results_of(campaign)
    assert scaling.primary_axis(results, campaign.varied) == "parallel_threads"
    assert scaling.series_axes(results, campaign.varied, "parallel_threads") == ["storage"]
    assert len(scaling.series_along(results, campaign.varied, "parallel_threads")) == 2


def test_labels_read_as_words() -> None:
    assert scaling.label({"workload": "dcgan_mnist", "framework": "torch", "workers": 4}) == (
        "dcgan_mnist, torch, 4 workers"
    )
    assert scaling.label({"cpu_cores": 1}) == "1 cpu core"
    assert scaling.label({"ranks_per_node": 1, "cpu_cores": 2}) == "1 rank per node, 2 cpu cores"
    assert scaling.label({"prefetch": None, "multiprocessing": False}) == "prefetch auto, no multiprocessing"
    assert scaling.label({"options.produce_s": 0.04}) == "produce s 0.04"
    assert scaling.label({}) == "all"


def test_a_failure_is_told_where_conditions_differ_too(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    for repeat, torch in enumerate(("2", "3")):
        events = [{"event": "model", "t_s": 0, "device": f"device {torch}"}]
        campaign.add(axes(1), run(0.2, events=events), repeat=repeat)
    campaign.add(axes(1), FakeRun([[1.0] + [0.2] * 3], exit_code=1), repeat=2)
    first, second = results_of(campaign)
    assert "run_incomplete" in {finding.code for finding in first.failures}
    assert second.failures == ()
    assert len({*first.rows, *second.rows}) == 2


def test_no_efficiency_where_two_resources_grow(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, varied=("nodes", "cpu_cores"))
    for count in (1, 2):
        campaign.add(axes(count, nodes=count), FakeRun([[1.0] + [0.2] * 40] * count))
    (series,) = scaling.series_along(results_of(campaign), campaign.varied, "cpu_cores")
    assert series.beside == ("nodes",)
    assert math.isnan(series.steps[-1].efficiency.value)


def test_cores_that_come_with_their_ranks_are_one_resource(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, varied=("ranks_per_node", "cpu_cores"))
    for count in (1, 2):
        campaign.add(axes(count, ranks_per_node=count), FakeRun([[1.0] + [0.2] * 40] * count))
    (series,) = scaling.series_along(results_of(campaign), campaign.varied, "cpu_cores")
    assert series.steps[-1].efficiency.value == pytest.approx(1.0)


def test_large_values_of_an_axis_are_told_apart() -> None:
    assert scaling.label({"seed": 1234567}) == "seed 1234567"
