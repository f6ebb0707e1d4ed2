"""A plateau that was measured is an answer, also where the model has no shape for the rise to it; a rise is none."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from harness.analysis.capacity import Group, Observation, pooled
from harness.analysis.capacity_lanes import Setting
from harness.analysis.recommend import Answer, recommend
from harness.analysis.recommend_plateau import plateau_of
from harness.analysis.stats import between_runs
from harness.report.recommend_words import answer_lines, as_values

Law = Callable[[int], float]
WORKERS = (1, 2, 4, 8, 16, 32)


def saturating(workers: int) -> float:
    """Some images are loaded beside the workers, so that the rise is no multiple of them; 8 feed the accelerator."""
    return min(800.0, 200.0 + 75 * workers)


def measured(law: Law, seed: int, noise: float = 0.02, cores: Law = lambda _workers: 48.0) -> Group:
    """Each number of workers three times."""
    generator = np.random.default_rng(seed)
    seen = []
    for workers in WORKERS:
        estimate = between_runs((law(workers) * np.exp(noise * generator.standard_normal(3))).tolist())
        seen.append(Observation(Setting(cores(workers), workers), estimate.value, estimate.se_log, runs=3))
    return Group({}, {}, pooled(seen), (), False, loads_inline=True)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_measured_plateau_is_answered_where_redrawn_fits_disagree(seed: int) -> None:
    found = recommend(measured(saturating, seed), {"cpu_cores": 48})
    assert isinstance(found, Answer)
    assert found.chance < 0.8 and any("as measured" in note for note in found.notes)
    (expected,) = (line for line in answer_lines(found, measured(saturating, seed)) if line.startswith("Expect"))
    assert "images/s as measured" in expected and "by the model" not in expected
    assert as_values(found, measured(saturating, seed))["interval"] == "between"
    assert found.setting.workers == 8 and found.ranges == {"workers": (5, 8)}
    assert found.rate.low < 800 < found.rate.high and found.ceiling.low < 800 < found.ceiling.high
    (choice,) = found.choices
    assert (choice.setting, choice.rate) == (found.setting, found.rate)


def test_cores_that_go_with_the_workers_are_asked_for_with_them() -> None:
    group = measured(saturating, 0, cores=lambda workers: workers + 5.0)
    flat = plateau_of(group.observations, 0.95, 0.05)
    assert flat is not None and flat.below is not None
    assert (flat.first.setting, flat.below) == (Setting(13.0, 8), Setting(9.0, 4))


@pytest.mark.parametrize(
    "law",
    [
        lambda w: 100 * (1 + math.log2(w)),
        lambda w: 800 * w / (w + 4),
        lambda w: 800 * (1 - math.exp(-w / 4)),
        lambda w: min(800, 100 * w) * 1.06 ** max(0.0, math.log2(w / 8)),
    ],
    ids=["logarithm", "hyperbola", "exponential", "6 % with each doubling"],
)
def test_what_still_rises_is_no_plateau(law: Law) -> None:
    assert [plateau_of(measured(law, seed).observations, 0.95, 0.05) for seed in range(50)] == [None] * 50


def test_most_plateaus_are_found_and_their_rates_are_true() -> None:
    found = [plateau_of(measured(saturating, seed).observations, 0.95, 0.05) for seed in range(200)]
    seen = [flat for flat in found if flat]
    assert len(seen) > 150
    assert {flat.first.setting.workers for flat in seen} <= {8, 16}
    bounds = [flat.bounds(flat.first) for flat in seen]
    assert np.mean([low < 800 < high for low, high in bounds]) > 0.95


@pytest.mark.parametrize("noise", [0.1, 0.2])
def test_scatter_hides_a_plateau(noise: float) -> None:
    found = [plateau_of(measured(saturating, seed, noise).observations, 0.95, 0.05) for seed in range(50)]
    assert sum(flat is not None for flat in found) <= 1


def test_settings_that_are_no_chain_tell_no_plateau() -> None:
    grid = [Observation(Setting(c, w), 800.0, 0.01, runs=3) for c in (4.0, 8.0, 16.0) for w in (4, 16)]
    stored = [Observation(Setting(workers=w, storage=s), 800.0, 0.01, runs=3) for s in "ab" for w in (4, 8, 16)]
    assert plateau_of(grid, 0.95, 0.05) is None and plateau_of(stored, 0.95, 0.05) is None


def test_a_plateau_without_a_beginning_has_no_width() -> None:
    inline = [Observation(Setting(workers=w), 800.0, 0.01, runs=3) for w in (0, 1, 2, 4)]
    assert plateau_of(inline, 0.95, 0.05) is None
    assert plateau_of(inline[1:], 0.95, 0.05) is not None


def test_points_run_once_tell_no_plateau() -> None:
    once = [Observation(Setting(workers=w), 800.0, 0.01, runs=1) for w in (1, 2, 4, 8)]
    assert plateau_of(once, 0.95, 0.05) is None
