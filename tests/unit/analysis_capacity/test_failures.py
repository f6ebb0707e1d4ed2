"""Settings whose runs fail, points under other conditions and points run once: what a recommendation makes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis.adaptive import Candidate, decide
from harness.analysis.capacity import Group, groups_of
from harness.analysis.capacity_lanes import Setting
from harness.analysis.collect import collect
from harness.analysis.points import point_results
from harness.analysis.recommend import Answer, Refused, recommend
from harness.analysis.recommend_settings import by_layout, fails
from harness.model.axes import Axes

STEPS, IMAGES = 24, 32
CRASHED = {"exit_code": 1, "cause": "exit"}
#: Of a point and a repeat: what the run is beside its steps, one for each attempt.
Attempts = Callable[[int, int], list[dict[str, object]]]


def rate(workers: int) -> float:
    """A GPU takes 800 images/s, a worker prepares 110 of them."""
    return float((800.0**-8 + (110.0 * workers) ** -8) ** (-1 / 8))


def group(root: Path, attempts: Attempts, repeats: int = 4) -> Group:
    campaign = FakeCampaign(root, "c", varied=("workers",), repeats=repeats)
    generator = np.random.default_rng(4)
    for workers in (1, 2, 4, 6, 8, 10, 16):
        axes = Axes(workload="lenet_mnist", framework="torch", workers=workers, cpu_cores=16, gpus_per_rank=1)
        for repeat in range(repeats):
            for number, how in enumerate(attempts(workers, repeat), start=1):
                steps = IMAGES / rate(workers) * (1 + 0.02 * generator.standard_normal(STEPS))
                campaign.add(axes, FakeRun([steps.tolist()], **how), repeat, number)  # type: ignore[arg-type]
    campaign.save()
    (found,) = groups_of(point_results(collect(campaign.layout)), ("workers",))
    return found


def at(workers: int) -> Setting:
    return Setting(16.0, workers, storage="hpctmp")


def always(_: int, __: int) -> list[dict[str, object]]:
    return [{}]


def test_without_failures_the_knee_is_recommended(tmp_path: Path) -> None:
    found = group(tmp_path, always)
    answer = recommend(found, draws=20)
    assert isinstance(answer, Answer) and answer.setting.workers in (8, 9)
    assert not found.broken and not any("failed" in note or "once" in note for note in answer.notes)


def test_a_setting_that_crashes_half_the_time_is_not_recommended_nor_more_workers(tmp_path: Path) -> None:
    found = group(tmp_path, lambda workers, repeat: [CRASHED if workers == 8 and repeat % 2 else {}])
    assert found.broken == (at(8),)
    answer = recommend(found, draws=20)
    assert isinstance(answer, Answer)
    assert answer.setting.workers < 8
    assert any("failed at a setting" in note for note in answer.notes)


def test_a_setting_at_which_all_runs_failed_bounds_the_search(tmp_path: Path) -> None:
    found = group(tmp_path, lambda workers, _: [CRASHED if workers >= 8 else {}])
    assert [left.code for left in found.left_out] == ["failed"] * 3
    (settings,) = by_layout(found, {"cpu_cores": 16}).values()
    assert max(s.workers for s in settings) == 7
    answer = recommend(found, {"cpu_cores": 16}, draws=20)
    assert isinstance(answer, Answer) and answer.setting.workers == 7


def test_failures_that_were_mended_are_told_and_no_reason_to_leave_a_setting_out(tmp_path: Path) -> None:
    found = group(tmp_path, lambda _, __: [CRASHED, {}])
    answer = recommend(found, draws=20)
    assert isinstance(answer, Answer) and answer.setting.workers in (8, 9)
    assert not found.broken
    told = any("4 of 8 runs of this very setting failed" in note for note in answer.notes)
    assert told == (answer.setting in found.settings)


def test_one_failure_among_two_repeats_is_told_only(tmp_path: Path) -> None:
    found = group(tmp_path, lambda workers, repeat: [CRASHED if workers == 8 and repeat else {}], repeats=2)
    assert found.failures[at(8)] == (1, 2) and not found.broken


def test_where_every_setting_that_may_be_had_breaks_there_is_no_answer(tmp_path: Path) -> None:
    found = group(tmp_path, lambda _, repeat: [CRASHED if repeat % 2 else {}])
    refused = recommend(found, draws=20)
    assert isinstance(refused, Refused) and refused.code == "failed" and "half of the runs" in refused.reason


def test_adaptive_choice_neither_proposes_nor_recommends_what_breaks(tmp_path: Path) -> None:
    found = group(tmp_path, lambda workers, _: [CRASHED if workers == 16 else {}])
    candidates = [Candidate(f"{w}", at(w), 1.0) for w in (1, 2, 4, 6, 8, 10, 16, 32)]
    decision = decide(found, candidates, frozenset({"1", "2", "4", "6", "8", "10", "16"}))
    assert decision.settled and decision.answer in ("8", "10")


@pytest.mark.parametrize(
    ("setting", "broken"),
    [
        (Setting(4.0, 8, threads=2, prefetch=4), True),
        (Setting(4.0, 12, threads=2, prefetch=8), True),
        (Setting(4.0, 6, threads=2, prefetch=4), False),
        (Setting(4.0, 12, threads=1, prefetch=8), False),
        (Setting(8.0, 12, threads=2, prefetch=4), False),
        (Setting(4.0, 8, threads=None, prefetch=4), False),
        (Setting(4.0, 8, threads=2, prefetch=4, storage="other"), False),
        (Setting(4.0, 8, threads=2, prefetch=4, nodes=2), False),
    ],
)
def test_what_is_taken_to_break_with_a_broken_setting(setting: Setting, broken: bool) -> None:
    failing = Setting(4.0, 8, threads=2, prefetch=4)
    assert fails(Group({}, {}, (), (), False, True, broken=(failing,)), setting) is broken


def test_points_measured_with_another_version_are_left_out(tmp_path: Path) -> None:
    newer = {"versions": {"python": "3.11.2", "torch": "3.0"}}
    found = group(tmp_path, lambda workers, _: [newer if workers in (4, 16) else {}])
    assert [s.workers for s in found.settings] == [1, 2, 6, 8, 10]
    assert {(left.code, left.reason) for left in found.left_out} == {
        ("conditions", "framework_version was 3.0, where most have 2.13.0")
    }


def test_points_that_were_run_once_are_told(tmp_path: Path) -> None:
    answer = recommend(group(tmp_path, always, repeats=1), draws=20)
    assert isinstance(answer, Answer)
    assert any(note.startswith("7 of 7 points were run once, so how runs differ is not known") for note in answer.notes)
