"""Where the steady window begins, on series whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from harness.analysis.steady import find_steady


def noisy(level: float, count: int, seed: int = 0, spread: float = 0.03) -> np.ndarray:
    return level * (1 + spread * np.random.default_rng(seed).normal(size=count))


def test_a_constant_run_leaves_out_its_floor_alone() -> None:
    window = find_steady(np.full(50, 0.1), floor=3)
    assert (window.warmup, window.begin, window.steady) == (3, 3, True)


@pytest.mark.parametrize("slow", [1, 4, 10])
def test_slow_first_steps_are_warmup(slow: int) -> None:
    durations = np.concatenate([np.full(slow, 3.0), noisy(0.1, 90)])
    window = find_steady(durations)
    assert slow <= window.begin <= slow + 5
    assert window.warmup >= slow
    assert window.steady


def test_a_fast_beginning_is_a_transient_not_warmup() -> None:
    """First step compiles, 16 steps live on the buffer, then the pipeline's own rate."""
    durations = np.concatenate([[15.0], np.full(16, 0.19), noisy(4.2, 100)])
    window = find_steady(durations)
    assert window.warmup == 1
    assert 17 <= window.begin <= 20
    assert window.steady


def test_occupancy_shows_a_drain_that_step_times_hide() -> None:
    durations = noisy(0.1, 100)
    occupancy = np.concatenate([np.arange(30, 0, -1), np.zeros(70)])
    assert find_steady(durations).begin < 10
    window = find_steady(durations, occupancy)
    assert 25 <= window.begin <= 35
    assert window.steady


def test_a_run_that_ends_within_the_drain_is_not_steady() -> None:
    occupancy = np.arange(100, 60, -1).astype(float)
    window = find_steady(noisy(0.1, 40), occupancy)
    assert not window.steady
    assert "drains" in window.reason


def test_a_filling_buffer_is_not_steady() -> None:
    window = find_steady(noisy(0.1, 40), np.arange(0, 20, 0.5))
    assert not window.steady
    assert "fills" in window.reason


def test_step_times_that_keep_growing_are_not_steady() -> None:
    window = find_steady(np.linspace(0.1, 0.4, 60) + noisy(0.01, 60))
    assert not window.steady
    assert "trends" in window.reason


def test_a_level_shift_after_the_cap_is_not_steady() -> None:
    window = find_steady(np.concatenate([noisy(0.1, 70), noisy(0.2, 30)]))
    assert not window.steady


def test_a_full_buffer_is_steady() -> None:
    assert find_steady(noisy(0.1, 40), np.full(40, 8.0)).steady


def test_a_late_straggler_neither_moves_the_window_nor_makes_it_unsteady() -> None:
    durations = noisy(0.1, 100)
    durations[70] = 2.0
    window = find_steady(durations)
    assert window.begin < 10
    assert window.steady


@pytest.mark.parametrize("count", [0, 1, 5])
def test_too_few_steps_are_not_steady(count: int) -> None:
    window = find_steady(np.full(count, 0.1))
    assert not window.steady
    assert f"only {max(count - 1, 0)} steps" in window.reason


def test_alternating_steps_are_steady() -> None:
    """Two loader workers deliver in pairs."""
    assert find_steady(np.tile([0.02, 0.18], 30)).steady


def test_steady_noise_is_rarely_called_unsteady() -> None:
    generator = np.random.default_rng(2)
    wrong = sum(not find_steady(0.1 * np.exp(0.2 * generator.normal(size=30))).steady for _ in range(300))
    assert wrong <= 9


def test_batch_repetition_counts_batches_taken() -> None:
    """One batch for 8 steps: a buffer losing 2 of 12 batches taken is a drain, though 100 steps passed."""
    occupancy = np.concatenate([np.full(50, 8.0), np.repeat([7.0, 6.5, 6.0, 5.5, 5.0], 10)])
    steps = noisy(0.1, 100)
    assert not find_steady(steps, occupancy, taken_per_step=1 / 8).steady
