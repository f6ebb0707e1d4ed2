"""The campaigns of results/sample, really measured: what is recommended from them, and how well points are told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.analysis.adaptive import Candidate, decide, saving
from harness.analysis.campaigns import load_campaign
from harness.analysis.capacity import Group, groups_of
from harness.analysis.collect import collect
from harness.analysis.points import point_results
from harness.analysis.recommend import Answer, Refused, recommend
from harness.cli.recommend import questions
from harness.layout import CampaignLayout

SAMPLE = Path(__file__).resolve().parents[3] / "results" / "sample"
DERIVED = ("runs.csv", "runs.parquet", "steps.parquet", "collected.json", "plots", "report.html", "lock")
#: CPU cores of the machine that they were measured on.
CORES = {"cpu_cores": 2}


def groups(name: str, tmp_path: Path) -> list[Group]:
    """A campaign's questions from a copy of its evidence: collecting writes tables beside it."""
    shutil.copytree(SAMPLE / name, tmp_path / name, ignore=shutil.ignore_patterns(*DERIVED))
    return questions(CampaignLayout(tmp_path / name))[1]


@pytest.mark.parametrize("name", ["cores_workers", "threads_prefetch", "pipeline_clock"])
def test_points_left_out_are_predicted_within_four_percent(name: str, tmp_path: Path) -> None:
    (group,) = groups(name, tmp_path)
    answer = recommend(group, CORES)
    assert isinstance(answer, Answer)
    assert len(answer.model.held_out) == len(group.observations)
    assert answer.model.held_out_median <= 0.04
    near = max(o.rate for o in group.observations if o.setting == answer.setting)
    assert answer.rate.low <= near <= answer.rate.high
    assert answer.rate.value >= 0.95 * answer.ceiling.value


def test_training_on_two_cores_wants_both_and_no_workers(tmp_path: Path) -> None:
    (group,) = groups("cores_workers", tmp_path)
    answer = recommend(group, CORES)
    assert isinstance(answer, Answer)
    # wait shares fall from a third to a fortieth with one worker, and the rate falls too: it takes the cores that train
    assert (answer.setting.cores, answer.setting.workers, answer.in_turns) == (2, 0, True)
    assert 0.25 < answer.wait_share < 0.4
    assert any("all the cores" in note for note in answer.notes)
    assert [(left.code, left.point) for left in answer.left_out] == [("unsteady", "2 cpu cores, 2 workers")]


def test_the_scripted_pipeline_on_the_real_clock_gives_its_script_back(tmp_path: Path) -> None:
    (group,) = groups("pipeline_clock", tmp_path)
    answer = recommend(group, CORES)
    assert isinstance(answer, Answer)
    # a batch of 32 takes a worker 60 ms and a step 20 ms: three workers, with a place for each
    assert (answer.setting.workers, answer.setting.prefetch) == (3, 4)
    fit = answer.model.best
    assert fit.parameter("prepare") == pytest.approx(32 / 0.060, rel=0.01)
    assert fit.parameter("compute") == pytest.approx(32 / 0.020, rel=0.015)


@pytest.mark.parametrize(("name", "points"), [("ranks", [2]), ("storage", [2, 2])])
def test_two_points_are_no_ground_for_advice(name: str, points: list[int], tmp_path: Path) -> None:
    found = groups(name, tmp_path)
    assert [len(group.observations) for group in found] == points
    for group in found:
        refused = recommend(group, CORES)
        assert isinstance(refused, Refused) and refused.code == "too_few_points"
        assert refused.best == max(group.observations, key=lambda o: o.rate)


@pytest.mark.parametrize(
    ("name", "share"),
    # a grid of eight points has no quarter that tells anything: a model needs four, and the answer must be among them
    [("pipeline_clock", 0.25), ("cores_workers", 0.7)],
)
def test_adaptive_choice_replayed_on_what_was_measured_finds_the_grids_answer(
    name: str, share: float, tmp_path: Path
) -> None:
    (whole,) = groups(name, tmp_path)
    layout = CampaignLayout(tmp_path / name)
    varied, table = load_campaign(layout).varied, collect(layout)
    results = {result.point_id: result for result in point_results(table)}
    hours = table.groupby("point_id")["job_s"].sum() / 3600
    settings = dict(zip([p for p in whole.point_ids if results[p].trusted], whole.settings, strict=True))
    candidates = [Candidate(point, setting, float(hours[point])) for point, setting in settings.items()]
    shown: frozenset[str] = frozenset()

    def seen() -> Group:
        return next(iter(groups_of([results[p] for p in sorted(shown)], varied)), Group({}, {}, (), (), False, True))

    while not (decision := decide(seen(), candidates, shown)).settled:
        shown |= set(decision.points)
    answer = recommend(whole, CORES)
    assert isinstance(answer, Answer) and decision.answer is not None
    assert settings[decision.answer] == answer.setting
    spent, everything = saving(candidates, shown)
    assert spent <= share * everything
