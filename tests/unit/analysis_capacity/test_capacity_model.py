"""The capacity model against known truth: replay's exact rates, a noisy three-lane cluster, the published tables."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from harness.analysis.capacity import Group, Observation
from harness.analysis.capacity_fit import first_form, fit, model_of, samples
from harness.analysis.capacity_lanes import Design, Form, Setting, lanes, predict
from harness.analysis.recommend import Answer, Range, Refused, recommend

PUBLISHED = Path(__file__).resolve().parents[3] / "results" / "published"


def group_of(observations: list[Observation], computes_on_cores: bool = False) -> Group:
    return Group({}, {}, tuple(observations), (), computes_on_cores, True)


def replay_rate(workers: int, prefetch: int, produce_s: float, consume_s: float = 0.01) -> float:
    """Images/s of the replay workload with 32 images in a batch."""
    if not workers:
        return 32 / (produce_s + consume_s)
    return 32 * min(min(workers, prefetch) / produce_s, 1 / consume_s)


def replay_grid(produce_s: float, workers: tuple[int, ...], depths: tuple[int, ...]) -> Group:
    return group_of(
        [
            Observation(Setting(workers=w, prefetch=p), replay_rate(w, p, produce_s), math.nan)
            for w in workers
            for p in depths
        ]
    )


@pytest.mark.parametrize(("produce_s", "workers", "depth"), [(0.005, 1, 1), (0.02, 2, 8), (0.04, 4, 8)])
def test_the_shipped_replay_grids_are_predicted_and_answered(produce_s: float, workers: int, depth: int) -> None:
    answer = recommend(replay_grid(produce_s, (1, 2, 4, 8), (1, 8)), draws=40)
    assert isinstance(answer, Answer)
    assert answer.model.held_out_median <= 0.04
    assert (answer.setting.workers, answer.setting.prefetch) == (workers, depth)
    assert answer.rate.value == pytest.approx(3200, rel=0.01)
    assert answer.rate.low < 3200 < answer.rate.high


def test_a_wide_replay_grid_with_inline_loading_gives_its_parameters() -> None:
    model = model_of(replay_grid(0.04, (0, 1, 2, 3, 4, 6, 8, 12), (1, 2, 4, 8, 16)))
    assert model is not None
    assert model.best.parameter("prepare") == pytest.approx(32 / 0.04, rel=0.01)
    assert model.best.parameter("compute") == pytest.approx(3200, rel=0.01)
    assert model.best.form.prefetch == "places" and model.best.form.inline
    assert model.held_out_median <= 0.04 and float(np.max(np.abs(model.held_out))) < 0.05


def cluster_rate(cores: int, workers: int, storage: str, nodes: int) -> float:
    """Truth written down apart from the model: 2 ranks a node, preparation with Amdahl's loss, two storages."""
    ranks = 2 * nodes
    device = 1 / 1400 + 0.0002 * (ranks - 1) / ranks
    at_once = min(cores, workers)
    prepare = (1 + 0.03 * (at_once - 1)) / (110 * at_once)
    storage_s = ranks / {"slow": 900, "fast": 6000}[storage]
    return ranks / (device**6 + prepare**6 + storage_s**6) ** (1 / 6)


def cluster_grid(noise: float, seed: int = 1) -> Group:
    generator = np.random.default_rng(seed)
    found = []
    for cores in (2, 4, 8, 16, 32):
        for workers in (2, 8, 32):
            for storage in ("slow", "fast"):
                for nodes in (1, 2):
                    setting = Setting(float(cores), workers, storage=storage, nodes=nodes, ranks_per_node=2)
                    rate = cluster_rate(cores, workers, storage, nodes) * math.exp(generator.normal() * noise)
                    found.append(Observation(setting, rate, noise))
    return group_of(found)


def test_a_noisy_cluster_is_predicted_within_four_percent_and_answered() -> None:
    answer = recommend(cluster_grid(0.015), draws=60)
    assert isinstance(answer, Answer)
    assert answer.model.held_out_median <= 0.04
    assert answer.setting.storage == "fast" and answer.setting.nodes == 2
    truth = cluster_rate(round(answer.setting.cores), answer.setting.workers, "fast", 2)
    assert answer.rate.low <= truth <= answer.rate.high
    best = max(cluster_rate(c, w, "fast", 2) for c in range(1, 65) for w in range(1, 65))
    assert truth >= 0.92 * best
    assert answer.ranges["cores"][0] <= answer.setting.cores <= answer.ranges["cores"][1]
    assert {choice.layout.nodes for choice in answer.choices} == {1, 2}


def test_predicted_rates_hold_the_truth_about_as_often_as_they_say() -> None:
    held = []
    for seed in range(6):
        group = cluster_grid(0.03, seed)
        model = model_of(group)
        assert model is not None
        drawn = np.array([f.rates(group.settings) for f in samples(model, group.observations, 60, seed)])
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
        truth = np.array(
            [cluster_rate(round(s.cores), s.workers, s.storage, s.nodes) for s in group.settings], dtype=float
        )
        held.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.8 <= float(np.mean(held)) <= 1.0


def published(name: str) -> list[dict[str, str]]:
    lines = (PUBLISHED / name).read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def test_the_published_dell_scaling_is_described() -> None:
    rows = [(int(row["gpus"]), float(row["images_per_second"])) for row in published("dell_scaling.csv")]
    group = group_of(
        [Observation(Setting(nodes=max(1, n // 4), ranks_per_node=min(4, n)), rate, math.nan) for n, rate in rows]
    )
    answer = recommend(group, draws=40)
    assert isinstance(answer, Answer)
    assert answer.setting.ranks == 16
    assert answer.choices[-1].efficiency.value == pytest.approx(1912.82 / 16 / 185.12, abs=0.04)
    assert answer.choices[0].efficiency == Range(1.0, 1.0, 1.0)
    spread = answer.choices[-1].efficiency
    assert 0.3 < spread.low < spread.value - 0.01 < spread.value + 0.01 < spread.high < 1.2
    assert answer.model.held_out_median < 0.1


def test_the_published_alcf_grid_is_noisy_and_said_to_be() -> None:
    group = group_of(
        [
            Observation(
                Setting(threads=int(row["parallel_threads"]), prefetch=int(row["prefetch_buffer_size"])),
                float(row["images_per_second"]),
                math.nan,
            )
            for row in published("alcf_threads_prefetch.csv")
        ]
    )
    answer = recommend(group, draws=40)
    assert isinstance(answer, Answer)
    assert 0.04 < answer.model.held_out_median < 0.15
    assert answer.ranges["threads"][1] >= 16
    assert answer.rate.high / answer.rate.low > 1.3


def test_a_rate_that_still_grows_is_no_answer_unless_cores_are_limited() -> None:
    group = group_of([Observation(Setting(cores=float(c)), 100.0 * c, 0.01) for c in (1, 2, 4, 8, 16)])
    refused = recommend(group, draws=30)
    assert isinstance(refused, Refused)
    assert refused.code == "beyond_measured" and "16 CPU cores" in refused.reason
    assert refused.best is not None and refused.best.rate == 1600
    answer = recommend(group, {"cpu_cores": 16}, draws=30)
    assert isinstance(answer, Answer)
    assert answer.setting.cores == 16


def test_too_few_points_and_nothing_varied_are_refused() -> None:
    few = recommend(group_of([Observation(Setting(cores=float(c)), 10.0 * c, 0.01) for c in (1, 2)]))
    same = recommend(group_of([Observation(Setting(), rate, 0.01) for rate in (10.0, 10.1, 9.9, 10.0)]))
    assert isinstance(few, Refused) and few.code == "too_few_points"
    assert isinstance(same, Refused) and same.code == "nothing_varied"


def test_scatter_that_leaves_the_knee_open_is_refused() -> None:
    found = recommend(
        group_of(
            [
                Observation(Setting(workers=w, prefetch=p), rate, 0.2)
                for w, p, rate in ((1, 1, 90.0), (8, 1, 400.0), (1, 8, 100.0), (8, 8, 420.0))
            ]
        ),
        draws=60,
    )
    assert isinstance(found, Refused)
    assert found.code == "undetermined" and "workers between" in found.reason and "repeat" in found.advice


def test_workers_that_burden_the_cores_that_train_are_not_recommended() -> None:
    # c cores train and load by turns in 6 / c + 2 ms; each worker for a core costs 4 % more, and saves nothing
    def rate(cores: int, workers: int) -> float:
        return 1000 / ((6 / cores + 2) * (1 + 0.04 * workers / cores))

    grid = [(c, w) for c in (1, 2, 4) for w in (0, 1, 2, 4)]
    group = group_of([Observation(Setting(float(c), w), rate(c, w), 0.01) for c, w in grid], computes_on_cores=True)
    answer = recommend(group, {"cpu_cores": 4}, draws=40)
    assert isinstance(answer, Answer)
    assert (answer.setting.cores, answer.setting.workers) == (4, 0)
    assert answer.model.best.form.burden and answer.model.held_out_median < 0.01
    assert answer.rate.value == pytest.approx(1000 / 3.5, rel=0.01)


def test_rates_without_any_pattern_are_refused() -> None:
    rates = [100, 900, 50, 700, 30, 1100, 20, 400]
    found = recommend(
        group_of([Observation(Setting(workers=w), float(r), 0.01) for w, r in zip(range(1, 9), rates, strict=True)])
    )
    assert isinstance(found, Refused)
    assert found.code == "model_misfit" and "%" in found.reason


def test_the_lanes_are_joined_between_their_sum_and_their_maximum() -> None:
    form = Form(parallel=("workers",), saturation="linear", inline=True)
    design = Design.of([Setting(workers=4), Setting(workers=0)])
    logs = np.log(np.array([100.0, 25.0, 3.0]))
    found = lanes(form, logs, design)
    assert found.compute.tolist() == pytest.approx([0.01, 0.01])
    assert found.prepare.tolist() == pytest.approx([0.01, 0.04])
    rates = np.exp(predict(form, logs, design))
    assert rates[0] == pytest.approx(1 / (0.01 * 2 ** (1 / 4)))
    assert rates[1] == pytest.approx(1 / 0.05)


def test_more_parameters_than_points_are_not_fitted() -> None:
    group = replay_grid(0.02, (1, 2), (1,))
    assert fit(first_form(group), group.observations) is None


@pytest.mark.parametrize(
    ("limit", "said"),
    [(48, "no more than 37 CPU cores for each rank were measured; with 48"), (37, "all the cores it may have")],
)
def test_the_most_that_was_measured_is_not_called_all_there_is(limit: int, said: str) -> None:
    counts = (1, 2, 4, 9, 18, 37)
    found = [Observation(Setting(float(c)), 100 * c / (1 + 0.1 * (c - 1)), 0.01, runs=3) for c in counts]
    answer = recommend(group_of(found, computes_on_cores=True), {"cpu_cores": limit}, draws=30)
    assert isinstance(answer, Answer)
    assert answer.setting.cores == 37
    assert [said in note for note in answer.notes if "cores" in note] == [True]
