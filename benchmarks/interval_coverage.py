"""How often the 95 % intervals hold the truth, on simulated data, and how often advice is right.

    python benchmarks/interval_coverage.py [within] [window] [repeats] [many] [fastest] [plateau] [recommend]

Run it after a change of harness/analysis/stats.py, steady.py or capacity*.py; ``recommend`` takes most of the time.

``within``: the interval of one run over all its steps. ``too few``: the share of runs without an interval, or said to
have too few steps for the correlation between them; ``unsteady``: said to be so, though they are not.
``window``: the same over the steady window that was chosen from the steps themselves.
``repeats``: points of several runs and their ratio, where runs scatter more than each knows.
``many``: campaigns of many points measured twice, nothing changed.
``fastest``: the one of several points that was measured to be the fastest.
``plateau``: measured plateaus, and curves that rise by 3 and 6 % with each doubling from there on.
``recommend``: rates expected by the capacity model, their ceilings, and what is asked for.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.analysis import stats, steady
from harness.analysis.best import chosen_from
from harness.analysis.capacity import Group, Observation, pooled
from harness.analysis.capacity_lanes import Setting
from harness.analysis.recommend import Answer, recommend
from harness.analysis.recommend_plateau import plateau_of
from harness.analysis.recommend_settings import Search, by_layout
from harness.analysis.stats import Estimate

RUNS = 1000
MEAN_S = 0.1
#: Relative standard error that a run knows of itself, from about 30 independent steps.
OWN = 0.01


def series(generator: np.random.Generator, count: int, phi: float) -> np.ndarray:
    """A stationary AR(1) series with mean 0 and variance 1."""
    values = np.empty(count)
    values[0] = generator.normal()
    noise = generator.normal(size=count) * math.sqrt(1 - phi**2)
    for index in range(1, count):
        values[index] = phi * values[index - 1] + noise[index]
    return values


def step_times(law: str, values: np.ndarray) -> np.ndarray:
    """Step times with mean :data:`MEAN_S`: 10 % normal scatter, or log-normal with sigma 0.4."""
    return MEAN_S * (1 + 0.1 * values) if law == "normal" else MEAN_S * np.exp(0.4 * values - 0.08)


def within() -> None:
    _one_run(chosen=False)


def window() -> None:
    _one_run(chosen=True)


def _one_run(chosen: bool) -> None:
    print(f"{'law':10} {'phi':>4} {'steps':>6} {'coverage':>9} {'too few':>9} {'either':>9} {'unsteady':>9}")
    for law in ("normal", "log-normal"):
        for phi in (-0.3, 0.0, 0.3, 0.6, 0.8, 0.9):
            for count in (12, 16, 20, 30, 50, 100, 200):
                shares = "".join(f" {share:9.3f}" for share in cell(law, phi, count, chosen))
                print(f"{law:10} {phi:4.1f} {count:6d}{shares}", flush=True)


def cell(law: str, phi: float, count: int, chosen: bool) -> tuple[float, float, float, float]:
    """Shares of runs: interval holds the truth, too few steps told or no interval given, either of both, unsteady."""
    generator = np.random.default_rng(1)
    held, told, unsteady = np.zeros(RUNS, bool), np.zeros(RUNS, bool), np.zeros(RUNS, bool)
    for run in range(RUNS):
        durations = step_times(law, series(generator, count, phi))
        found = steady.find_steady(durations)
        used = durations[found.begin if chosen else 0 :]
        estimate = stats.within_run(np.full(len(used), 32.0), used)
        held[run] = estimate.low <= 32 / MEAN_S <= estimate.high
        told[run] = not estimate.known or estimate.independent_steps < stats.MIN_INDEPENDENT_STEPS
        unsteady[run] = not found.steady
    return float(held.mean()), float(told.mean()), float((held | told).mean()), float(unsteady.mean())


def point(
    generator: np.random.Generator, runs: int, scatter: float, truth: float = 1.0, law: str = "normal"
) -> Estimate:
    """A point of so many runs, which scatter by ``scatter`` beside the error that each knows."""
    drawn = generator.normal(size=runs) if law == "normal" else 1 - generator.exponential(size=runs)
    rates = truth * np.exp(scatter * drawn + OWN * generator.normal(size=runs))
    errors = OWN * np.sqrt(generator.chisquare(30, size=runs) / 30)
    known = [Estimate(float(r), float(e), math.inf, 1, "within") for r, e in zip(rates, errors, strict=True)]
    return stats.between_runs([one.value for one in known], known)


def repeats() -> None:
    """``slow ones``: most runs are alike and some are slower, by an exponential law."""
    print(f"{'scatter of runs':15} {'law':>10} {'runs':>5} {'point':>9} {'ratio':>9}")
    for law in ("normal", "slow ones"):
        for scatter in (0.0, 0.01, 0.02, 0.05):
            for runs in (1, 2, 3, 5, 10):
                generator = np.random.default_rng(1)
                pairs = [[point(generator, runs, scatter, law=law) for _ in range(2)] for _ in range(RUNS)]
                held = np.mean([one.low <= 1 <= one.high for pair in pairs for one in pair])
                ratios = [stats.ratio(*pair) for pair in pairs]
                kept = np.mean([ratio.low <= 1 <= ratio.high for ratio in ratios])
                print(f"{scatter:<15.0%} {law:>10} {runs:5d} {held:9.3f} {kept:9.3f}", flush=True)


def many() -> None:
    """Share of comparisons with a verdict though nothing changed; of builds that fail, point by point and together."""
    print(f"{'points':>6} {'runs':>5} {'scatter':>8} {'any verdict':>12} {'fails, each':>12} {'fails':>9}")
    for points in (1, 10, 40):
        for runs in (2, 3, 5):
            for scatter in (0.03, 0.1):
                generator = np.random.default_rng(1)
                told = np.zeros((RUNS // 4, 3), bool)
                for row in told:
                    pairs = [[point(generator, runs, scatter) for _ in range(2)] for _ in range(points)]
                    ratios = [stats.ratio(*pair) for pair in pairs]
                    alone = [ratio.differs_from(1.0) for ratio in ratios]
                    slow = [ratio.value < 0.9 for ratio in ratios]
                    sure = stats.surely_unlike_one(ratios)
                    row[:] = any(alone), any(np.logical_and(alone, slow)), any(np.logical_and(sure, slow))
                shares = "".join(
                    f" {share:{width}.3f}" for share, width in zip(told.mean(axis=0), (12, 12, 9), strict=True)
                )
                print(f"{points:6d} {runs:5d} {scatter:8.0%}{shares}", flush=True)


def fastest() -> None:
    """``point``: its own interval; ``chosen``: that which allows for the choice; ``wider``: its width against that.

    ``bias``: of its rate, in units of the runs' scatter. ``unlike``: points scatter by unlike amounts.
    """
    print(f"{'rates':>8} {'points':>6} {'runs':>5} {'point':>9} {'chosen':>9} {'wider':>6} {'bias':>6}")
    for name in ("equal", "rising", "unlike"):
        for points in (2, 5, 14, 40):
            for runs in (2, 3, 4, 5):
                shares = np.mean(found := _fastest_of(name, points, runs), axis=0)
                wider = np.median([row[2] for row in found])
                numbers = f"{shares[0]:9.3f} {shares[1]:9.3f} {wider:6.2f} {shares[3]:6.2f}"
                print(f"{name:>8} {points:6d} {runs:5d} {numbers}", flush=True)


def _fastest_of(name: str, points: int, runs: int) -> list[tuple[float, ...]]:
    generator = np.random.default_rng(1)
    # from 30 % to the plateau that the last third is on
    rising = name == "rising"
    truths = [min(1.0, 0.3 + 0.9 * place / (points - 1)) if rising else 1.0 for place in range(points)]
    found = []
    for _ in range(RUNS // 4):
        scatters = 0.05 * np.exp(0.5 * generator.normal(size=points) if name == "unlike" else np.zeros(points))
        seen = [point(generator, runs, float(s), truth) for s, truth in zip(scatters, truths, strict=True)]
        chosen, _ = chosen_from(seen)
        index = max(range(points), key=lambda place: seen[place].value)
        own, wide, truth = seen[index], chosen[index], truths[index]
        held = [float(one.low <= truth <= one.high) for one in (own, wide)]
        wider = math.log(wide.high / wide.low) / math.log(own.high / own.low)
        found.append((*held, wider, math.log(own.value / truth) / 0.05))
    return found


@dataclass(frozen=True)
class Case:
    """Settings that are measured, and the rate that each really has."""

    name: str
    settings: tuple[tuple[int, int], ...]
    rate: Callable[[float, int], float]
    computes_on_cores: bool = False


def _trained_on_cores(cores: float, workers: int) -> float:
    """Loading and training take turns without workers; with them, each worker for a core costs 4 %."""
    step = (6 / cores + 2) * (1 + 0.04 * workers / cores)
    return 1000 / (max(step + 1 / cores, 4 / workers) if workers else step + 4)


def _fed(cores: float, workers: int) -> float:
    """An accelerator at 900 images/s, fed by the least of cores and workers with a little loss."""
    at_once = min(cores, workers)
    return float((900**-3 + (120 * at_once / (1 + 0.05 * (at_once - 1))) ** -3) ** (-1 / 3))


def _unlike_the_model(cores: float, workers: int) -> float:
    return 700 * (1 - math.exp(-min(cores, workers) / 4)) / (1 + 0.004 * max(workers - cores, 0) ** 1.5)


CASES = (
    Case("5 points, CPU", ((1, 0), (2, 0), (1, 1), (2, 1), (2, 2)), _trained_on_cores, computes_on_cores=True),
    Case("5 points", tuple((w, w) for w in (1, 2, 4, 8, 16)), _fed),
    Case("12 points", tuple((c, w) for c in (2, 4, 8, 16) for w in (2, 4, 16)), _fed),
    Case("no such model", tuple((c, w) for c in (2, 4, 8, 16) for w in (2, 4, 16)), _unlike_the_model),
)
CAMPAIGNS = 40


def _plateau_from_8(growth: float) -> Case:
    def rate(_cores: float, workers: int) -> float:
        return min(800.0, 200.0 + 75 * workers) * (1 + growth) ** max(0.0, math.log2(workers / 8))

    return Case(f"{growth:.0%} a doubling", tuple((48, w) for w in (1, 2, 4, 8, 16, 32)), rate)


def plateaus() -> None:
    """``good``: what is found gives 90 % of the best there is. Three repeats."""
    print(f"{'from 8 on':14} {'scatter':>8} {'found':>6} {'rate':>6} {'good':>6}")
    for case in map(_plateau_from_8, (0.0, 0.03, 0.06)):
        best = max(case.rate(*setting) for setting in case.settings)
        for scatter in (0.02, 0.03, 0.04, 0.06):
            groups = [_campaign(case, 3, scatter, np.random.default_rng([7, n])) for n in range(RUNS)]
            seen = [flat for one in groups if (flat := plateau_of(one.observations, 0.95, 0.05))]
            truths = [case.rate(f.first.setting.cores, f.first.setting.workers) for f in seen]
            bounds = [flat.bounds(flat.first) for flat in seen]
            held = [low <= truth <= high for truth, (low, high) in zip(truths, bounds, strict=True)]
            good = [truth >= 0.9 * best for truth in truths]
            shares = f"{np.mean(held):6.2f} {np.mean(good):6.2f}" if seen else ""
            print(f"{case.name:14} {scatter:8.0%} {len(seen) / RUNS:6.2f} {shares}", flush=True)


def recommendations() -> None:
    """``good``: what is asked for gives 90 % of the best there is, which the answer counts as good enough."""
    heads = f"{'rate':>6} {'ceiling':>8} {'good':>6} {'bias':>7}"
    print(f"{'case':14} {'runs':>4} {'scatter':>8} {'answers':>8} {heads}  refused")
    for case in CASES:
        for runs, scatter in ((1, 0.04), (2, 0.04), (3, 0.04), (3, 0.1)):
            answers, refused = _asked(case, runs, scatter)
            held, ceiling, good, bias = np.mean(answers, axis=0) if answers else (math.nan,) * 4
            told = ", ".join(f"{count} {code}" for code, count in refused.items())
            shares = f"{len(answers):8d} {held:6.2f} {ceiling:8.2f} {good:6.2f} {bias:+7.1%}"
            print(f"{case.name:14} {runs:4d} {scatter:8.0%} {shares}  {told}", flush=True)


def _asked(case: Case, runs: int, scatter: float) -> tuple[list[tuple[float, ...]], Counter[str]]:
    limits = {"cpu_cores": max(cores for cores, _ in case.settings)}
    answers, refused = [], Counter[str]()
    for seed in range(CAMPAIGNS):
        group = _campaign(case, runs, scatter, np.random.default_rng([7, seed]))
        found = recommend(group, limits)
        if not isinstance(found, Answer):
            refused[found.code] += 1
            continue
        best = max(case.rate(s.cores, s.workers) for s in Search(by_layout(group, limits), 0.95).settings)
        truth = case.rate(found.setting.cores, found.setting.workers)
        held = found.rate.low <= truth <= found.rate.high
        known = found.ceiling.low <= best <= found.ceiling.high
        answers.append((float(held), float(known), float(truth >= 0.9 * best), found.rate.value / truth - 1))
    return answers, refused


def _campaign(case: Case, runs: int, scatter: float, generator: np.random.Generator) -> Group:
    seen = []
    for cores, workers in case.settings:
        estimate = point(generator, runs, scatter, case.rate(cores, workers))
        seen.append(Observation(Setting(float(cores), workers), estimate.value, estimate.se_log, runs=runs))
    return Group({}, {}, pooled(seen), (), case.computes_on_cores, loads_inline=True)


PARTS: dict[str, Callable[[], None]] = {
    "within": within,
    "window": window,
    "repeats": repeats,
    "many": many,
    "fastest": fastest,
    "plateau": plateaus,
    "recommend": recommendations,
}


def main(names: Sequence[str]) -> None:
    if unknown := [name for name in names if name not in PARTS]:
        raise SystemExit(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    for name in names or PARTS:
        print(f"\n{name}")
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
