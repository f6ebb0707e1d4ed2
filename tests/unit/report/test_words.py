"""Sentences claim what the intervals allow and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from evidence_support import FakeCampaign, FakeRun

from harness.analysis.collect import collect
from harness.model.axes import Axes
from harness.report.request import requests
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
        "(3 runs each; efficiency 83.3% [81.6, 85.1])."
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


def grid_campaign(root: Path, step_s: dict[tuple[int, int], float], repeats: int = 3) -> FakeCampaign:
    """Points by (cores, workers), repeats half a per cent apart."""
    campaign = FakeCampaign(root, "c", varied=("cpu_cores", "workers"), repeats=repeats)
    for (cores, workers), seconds in step_s.items():
        point = Axes(workload="resnet20_cifar10", framework="torch", cpu_cores=cores, workers=workers, steps_timed=30)
        for repeat in range(repeats):
            campaign.add(point, FakeRun([[1.0] + [seconds * (1 + 0.005 * repeat)] * 30]), repeat=repeat)
    return campaign


def fed_by_workers(root: Path) -> FakeCampaign:
    """More cores alone do nothing; 4 workers are 4 times as fast as none, 8 not any faster."""
    return grid_campaign(root, {(c, w): 0.4 / min(max(w, 1), 4) for c in (4, 8) for w in (0, 4, 8)})


def test_what_an_axis_other_than_the_primary_one_did_is_said(tmp_path: Path) -> None:
    sentences = said(fed_by_workers(tmp_path))
    (workers,) = [one for one in sentences if one.startswith("8 cpu cores: 8 workers give 4.00 [")]
    assert workers.endswith("times the images/s of 0 (3 runs each); 4 gave as much.")


def test_a_difference_too_small_to_matter_is_no_reason_to_repeat(tmp_path: Path) -> None:
    sentences = said(fed_by_workers(tmp_path))
    assert sentences[0].endswith("times the images/s of 4: no difference of more than 2% (3 runs each).")
    assert not any("repeats would tell" in one or one.startswith("Next") for one in sentences)


def test_one_run_each_is_too_little_to_deny_a_difference(tmp_path: Path) -> None:
    sentences = said(cores_campaign(tmp_path, {1: [0.2], 2: [0.2]}))
    assert "no difference" not in sentences[0]


def test_nobody_is_sent_to_repeat_fifty_times(tmp_path: Path) -> None:
    sentences = said(cores_campaign(tmp_path, {1: [0.2, 0.24], 2: [0.2, 0.239]}))
    assert sentences[0].endswith("With this spread it would take more than 20 repeats to tell.")


def test_workers_that_begin_at_none_have_no_efficiency(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "c", varied=("workers",), repeats=2)
    for workers in (0, 4):
        for repeat in range(2):
            run = FakeRun([[1.0] + [0.4 / max(workers, 1) * (1 + 0.005 * repeat)] * 30])
            campaign.add(Axes(workload="replay", workers=workers, steps_timed=30), run, repeat=repeat)
    sentences = said(campaign)
    assert "4 workers give 4" in sentences[0] and "(2 runs each)" in sentences[0]


def test_what_was_varied_already_is_not_proposed_again(tmp_path: Path) -> None:
    waits = {"waits": [0.0] + [0.05] * 30}
    campaign = FakeCampaign(tmp_path, "c", varied=("workers",), repeats=3)
    for workers in (1, 2):
        for repeat in range(3):
            run = FakeRun([[1.0] + [0.1 / workers**0.2 * (1 + 0.002 * repeat)] * 30], **waits)
            campaign.add(Axes(workload="replay", workers=workers, steps_timed=30), run, repeat=repeat)
    advice = said(campaign)[-1]
    assert advice.startswith("Next: vary parallel_threads or prefetch") and "workers" not in advice


def test_the_least_of_all_that_was_measured_is_named_over_all_knobs(tmp_path: Path) -> None:
    campaign = fed_by_workers(tmp_path)
    saved = campaign.save()
    first = requests(collect(campaign.layout), saved)[0]
    assert first.startswith("resnet20_cifar10, torch: of all that was measured, request 4 workers, 4 cpu cores for ")


def test_a_single_point_leaves_no_choice(tmp_path: Path) -> None:
    campaign = cores_campaign(tmp_path, {1: [0.2, 0.202]})
    saved = campaign.save()
    (only,) = requests(collect(campaign.layout), saved)
    assert "at the only point to rely on; there is no choice yet." in only


def test_no_advice_repeats_another(tmp_path: Path) -> None:
    """The best of all is not told again for its series, and that rates still rise is told once for all of them."""
    speed = {0: 1.0, 2: 0.8, 4: 0.7}
    campaign = grid_campaign(tmp_path, {(c, w): 0.4 / c / speed[w] for c in (1, 2) for w in speed})
    saved = campaign.save()
    sentences = requests(collect(campaign.layout), saved)
    heads = [sentence.split(" for ")[0] for sentence in sentences]
    assert heads == [
        "resnet20_cifar10, torch: of all that was measured, request 0 workers, 2 cpu cores",
        "resnet20_cifar10, torch, 2 workers: request 2 cpu cores",
        "resnet20_cifar10, torch, 4 workers: request 2 cpu cores",
        "The rate still rises at 2 cpu cores, and more was not measured: 0 workers; 2 workers; 4 workers.",
    ]


def test_that_all_points_ran_once_is_said_once(tmp_path: Path) -> None:
    campaign = grid_campaign(tmp_path, {(c, w): 0.4 / c / (1 + w) for c in (1, 2) for w in (0, 2)}, repeats=1)
    saved = campaign.save()
    sentences = requests(collect(campaign.layout), saved)
    assert sum("from one run each" in sentence.lower() for sentence in sentences) == 1
    assert sentences[-1].startswith("All from one run each")


def test_a_series_whose_gain_may_be_chance_is_told_though_it_is_the_best(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "c", varied=("cpu_cores", "workers"), repeats=3)
    for cores, workers, seconds in ((1, 0, 0.1), (2, 0, 0.09), (1, 2, 0.3), (2, 2, 0.15)):
        point = Axes(workload="replay", cpu_cores=cores, workers=workers, steps_timed=30)
        for repeat in range(3):
            steps = [1.0] + [seconds * (1 + 0.2 * (repeat - 1))] * 30
            campaign.add(point, FakeRun([steps]), repeat=repeat)
    saved = campaign.save()
    sentences = requests(collect(campaign.layout), saved)
    assert sentences[0].startswith("replay: of all that was measured, request 0 workers, 2 cpu cores for ")
    assert any(one.startswith("replay, 0 workers: ") and "cannot be told from chance" in one for one in sentences)


def test_the_best_is_a_point_to_rely_on(tmp_path: Path) -> None:
    campaign = cores_campaign(tmp_path, {1: [0.2, 0.201, 0.202], 4: [0.1, 0.101, 0.102]})
    point = Axes(workload="resnet20_cifar10", framework="torch", cpu_cores=2, steps_timed=30)
    for repeat in range(3):
        campaign.add(point, FakeRun([list(np.linspace(0.001, 0.02, 31))]), repeat=repeat)
    assert "the best is" not in said(campaign)[0]


def test_what_changed_along_an_axis_is_named_with_it(tmp_path: Path) -> None:
    """Of a grid of cores and workers two corners failed: what is left of it tells neither's effect alone."""
    steps_s = {(cores, workers): 0.4 / cores / workers for cores in (1, 2) for workers in (1, 2)}
    campaign = grid_campaign(tmp_path, {both: s for both, s in steps_s.items() if both[0] == both[1]})
    for cores, workers in ((1, 2), (2, 1)):
        point = Axes(workload="resnet20_cifar10", framework="torch", cpu_cores=cores, workers=workers, steps_timed=30)
        campaign.add(point, FakeRun([[0.2] * 3], exit_code=1))
    first = said(campaign)[0]
    assert first.startswith("resnet20_cifar10 in torch: 2 cpu cores, 2 workers give 4.00 [")
    assert "times the images/s of 1 cpu core, 1 worker (3 runs each" in first


def test_loaders_have_a_speed_up_and_no_efficiency(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "c", varied=("workers",))
    for workers, step_s in ((1, 0.4), (2, 0.22), (4, 0.13)):
        for repeat in range(3):
            point = Axes(workload="resnet20_cifar10", framework="torch", workers=workers, steps_timed=30)
            campaign.add(point, FakeRun([[1.0] + [step_s * (1 + 0.005 * repeat)] * 30]), repeat=repeat)
    sentences = said(campaign)
    assert "4 workers give 3.08 [" in sentences[0] and "efficiency" not in sentences[0]
    assert sentences[-1] == "Next: try more than 4 workers: 1 of 1 series still scale there."


def test_a_rate_that_has_stopped_to_rise_is_not_said_to_scale(tmp_path: Path) -> None:
    """5 cores are well used against 1, and give no more than 4."""
    campaign = cores_campaign(tmp_path, {c: [0.4 / min(c, 4) * s for s in (1, 1.004, 1.008)] for c in (1, 4, 5)})
    assert not any("still scale" in sentence for sentence in said(campaign))


def test_no_advice_compares_what_no_job_chooses(tmp_path: Path) -> None:
    """Other data, and rungs of a ladder, are no faster way to train the same."""
    campaign = FakeCampaign(tmp_path, "c", varied=("dataset", "feed"), repeats=2)
    fed = (("a:cifar10", "pipeline", 0.1), ("b:cifar10", "pipeline", 0.2), ("b:cifar10", "device", 0.01))
    for dataset, feed, step_s in fed:
        point = Axes(workload="resnet20_cifar10", framework="torch", dataset=dataset, feed=feed, steps_timed=30)
        for repeat in range(2):
            campaign.add(point, FakeRun([[1.0] + [step_s * (1 + 0.01 * repeat)] * 30]), repeat=repeat)
    saved = campaign.save()
    found = requests(collect(campaign.layout), saved)
    assert [line.split(":")[0] for line in found] == ["resnet20_cifar10, torch, a", "resnet20_cifar10, torch, b"]
    assert all("the only point to rely on" in line for line in found)
