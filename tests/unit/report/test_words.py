"""Sentences claim what the intervals allow and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from evidence_support import FakeCampaign, FakeRun

from harness.analysis.collect import collect
from harness.model.axes import Axes
from harness.report.words import summary


def said(campaign: FakeCampaign) -> list[str]:
    saved = campaign.save()
    return summary(collect(campaign.layout), saved)


def cores_campaign(
    root: Path, steps_s: dict[int, list[float]], varied: tuple[str, ...] = ("cpu_cores",), **more: object
) -> FakeCampaign:
    """Points by cores, each with one run per step time."""
    campaign = FakeCampaign(root, "c", varied=varied, repeats=max(len(v) for v in steps_s.values()))
    for cores, times in steps_s.items():
        point = Axes(workload="resnet20_cifar10", framework="torch", cpu_cores=cores, steps_timed=30)
        for repeat, step_s in enumerate(times):
            campaign.add(point, FakeRun([[1.0] + [step_s] * 30], **more), repeat=repeat)  # type: ignore[arg-type]
    return campaign


def test_a_clear_speedup_is_claimed_with_its_interval(tmp_path: Path) -> None:
    sentences = said(cores_campaign(tmp_path, {1: [0.2, 0.202, 0.198], 2: [0.12, 0.121, 0.119]}))
    assert sentences[0] == (
        "resnet20_cifar10 in torch: 2 cpu cores give 1.67 [1.63, 1.70] times the images/s of 1 "
        "(3 runs each; efficiency 83%)."
    )
    assert sentences[-1].startswith("Next: try more than 2 cpu cores")


def test_an_unresolved_difference_is_not_claimed(tmp_path: Path) -> None:
    sentences = said(cores_campaign(tmp_path, {1: [0.2, 0.22], 2: [0.19, 0.21]}))
    assert "not resolvable from 2 runs each" in sentences[0]
    assert "efficiency" not in sentences[0]
    assert sentences[-1].startswith("Next: repeat (`repeats: 4`")


def test_one_repeat_says_what_it_does_not_know(tmp_path: Path) -> None:
    sentences = said(cores_campaign(tmp_path, {1: [0.2], 2: [0.12]}))
    assert "the spread between runs is unknown" in sentences[0]
    assert sentences[-1].startswith("Next: repeat (`repeats: 3`")


def test_an_unsteady_run_supports_no_claim(tmp_path: Path) -> None:
    campaign = cores_campaign(tmp_path, {1: [0.2, 0.2]})
    point = Axes(workload="resnet20_cifar10", framework="torch", cpu_cores=2, steps_timed=30)
    for repeat in range(2):
        campaign.add(point, FakeRun([list(np.linspace(0.1, 0.4, 31))]), repeat=repeat)
    sentences = said(campaign)
    assert "do not rely on it: the run did not reach a steady state" in sentences[0]
    assert "1 of 2 points did not reach a steady state; nothing is recommended from them." in sentences
    assert "timed steps" in sentences[-1]


def test_failures_come_first_in_what_to_do_next(tmp_path: Path) -> None:
    campaign = cores_campaign(tmp_path, {1: [0.2, 0.2]})
    point = Axes(workload="resnet20_cifar10", framework="torch", cpu_cores=2, steps_timed=30)
    campaign.add(point, FakeRun([[0.2] * 3], exit_code=1))
    sentences = said(campaign)
    assert "Not measured: 1 FAILED." in sentences
    assert sentences[-1] == "Next: see why with `harness check c`, then `harness retry c`."


def test_nothing_measured(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "c")
    campaign.plan(Axes(workload="replay"))
    assert said(campaign) == ["Nothing was measured: no run has been tried."]


def test_waiting_for_data_is_told(tmp_path: Path) -> None:
    campaign = cores_campaign(tmp_path, {1: [0.2, 0.2]}, waits=[0.0] + [0.1] * 30)
    sentences = said(campaign)
    assert "1 of 1 points waited for data: there the input pipeline limits training." in sentences


def test_frameworks_are_compared_where_all_else_is_equal(tmp_path: Path) -> None:
    campaign = cores_campaign(tmp_path, {1: [0.2, 0.201, 0.2]}, varied=("framework",))
    point = Axes(workload="resnet20_cifar10", framework="tensorflow", steps_timed=30)
    for repeat in range(3):
        campaign.add(point, FakeRun([[1.0] + [0.1] * 30]), repeat=repeat)
    assert any("tensorflow is 2.00" in s and "times as fast as torch" in s for s in said(campaign))


def test_sixty_series_are_summed_up(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "c", varied=("cpu_cores", "storage"), repeats=1)
    for number in range(12):
        for cores in (1, 2):
            point = Axes(workload="replay", cpu_cores=cores, storage=f"s{number:02d}", steps_timed=30)
            campaign.add(point, FakeRun([[1.0] + [0.1 / (1 + (cores - 1) * number / 11)] * 30]))
    sentences = said(campaign)
    assert sentences[0].startswith("12 series along cpu cores: ")
    assert "1 to 2" in sentences[0].replace("1.00", "1").replace("2.00", "2")
    assert len(sentences) < 8
