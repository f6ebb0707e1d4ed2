"""How often the 95 % interval within a run holds the truth, and how often a steady run is called unsteady.

``too few`` is the share of runs said to have too few steps for the correlation seen between them.

Simulated step times: normal and log-normal, first-order autocorrelated; 1,000 runs a row. Run it after a change of
harness/analysis/stats.py or steady.py:

    python benchmarks/interval_coverage.py
"""

from __future__ import annotations

import math

import numpy as np

from harness.analysis import stats, steady

RUNS = 1000
MEAN_S = 0.1


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


def main() -> None:
    print(f"{'law':10} {'phi':>4} {'steps':>6} {'coverage':>9} {'too few':>9} {'either':>9} {'unsteady':>9}")
    for law in ("normal", "log-normal"):
        for phi in (-0.3, 0.0, 0.3, 0.6, 0.8, 0.9):
            for count in (12, 16, 20, 30, 50, 100, 200):
                shares = "".join(f" {share:9.3f}" for share in cell(law, phi, count))
                print(f"{law:10} {phi:4.1f} {count:6d}{shares}", flush=True)


def cell(law: str, phi: float, count: int) -> tuple[float, float, float, float]:
    """Shares of runs: interval holds the truth, too few steps told, either of both, unsteady."""
    generator = np.random.default_rng(1)
    held, told, unsteady = np.zeros(RUNS, bool), np.zeros(RUNS, bool), np.zeros(RUNS, bool)
    for run in range(RUNS):
        durations = step_times(law, series(generator, count, phi))
        estimate = stats.within_run(np.full(count, 32.0), durations)
        held[run] = estimate.low <= 32 / MEAN_S <= estimate.high
        told[run] = estimate.independent_steps < stats.MIN_INDEPENDENT_STEPS
        unsteady[run] = not steady.find_steady(durations).steady
    return float(held.mean()), float(told.mean()), float((held | told).mean()), float(unsteady.mean())


if __name__ == "__main__":
    main()
