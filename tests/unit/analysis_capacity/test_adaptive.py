"""Adaptive choice replayed on full grids: the same answer within one step, for a quarter of the node-hours at most."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from harness.analysis.adaptive import Candidate, decide, saving, spanning
from harness.analysis.capacity import Group, Observation
from harness.analysis.capacity_lanes import Setting

Rate = Callable[[Setting], float]


class FullGrid:
    """A grid with all its rates, of which as much is shown as was asked for."""

    def __init__(self, settings: list[Setting], rate: Rate, noise: float, seed: int = 0):
        generator = np.random.default_rng(seed)
        self.candidates = [Candidate(f"p{i}", s, float(s.nodes)) for i, s in enumerate(settings)]
        self.rates = {c.point_id: rate(c.setting) * math.exp(generator.normal() * noise) for c in self.candidates}
        self.noise = noise

    def group(self, shown: frozenset[str]) -> Group:
        seen = [c for c in self.candidates if c.point_id in shown]
        observations = [Observation(c.setting, self.rates[c.point_id], self.noise or math.nan) for c in seen]
        return Group({}, {}, tuple(observations), (), False, True)

    def full_answer(self) -> Setting:
        everything = frozenset(self.rates)
        return self.setting(decide(self.group(everything), self.candidates, everything).answer)

    def setting(self, point_id: str | None) -> Setting:
        return next(c.setting for c in self.candidates if c.point_id == point_id)

    def adapt(self) -> tuple[Setting, frozenset[str]]:
        shown: frozenset[str] = frozenset()
        while not (decision := decide(self.group(shown), self.candidates, shown)).settled:
            assert not shown & set(decision.points), "a measured point is proposed again"
            shown |= set(decision.points)
        return self.setting(decision.answer), shown


def steps_apart(a: Setting, b: Setting, settings: list[Setting]) -> int:
    """The largest number of grid steps between two settings, over workers, prefetch, cores, nodes and storage."""
    apart = []
    for knob in ("workers", "prefetch", "cores", "nodes", "storage"):
        values = sorted({getattr(s, knob) for s in settings} - {None})
        if len(values) > 1:
            apart.append(abs(values.index(getattr(a, knob)) - values.index(getattr(b, knob))))
    return max(apart)


def replay(produce_s: float) -> Rate:
    return lambda s: 32 * min(min(s.workers, s.prefetch or 0) / produce_s, 100)


def cluster(slow: float, fast: float, each: float) -> Rate:
    def rate(s: Setting) -> float:
        ranks, at_once = 2 * s.nodes, min(s.cores, s.workers)
        device = 1 / 1400 + 0.0002 * (ranks - 1) / ranks
        prepare = (1 + 0.03 * (at_once - 1)) / (each * at_once)
        storage = ranks / {"slow": slow, "fast": fast}[s.storage]
        return float(ranks / (device**6 + prepare**6 + storage**6) ** (1 / 6))

    return rate


REPLAY = [Setting(workers=w, prefetch=p) for w in (1, 2, 3, 4, 6, 8, 12, 16) for p in (1, 2, 4, 8, 16, 32)]
CLUSTER = [
    Setting(float(c), w, storage=s, nodes=n, ranks_per_node=2)
    for c in (1, 2, 4, 8, 16, 32)
    for w in (1, 4, 8, 32)
    for s in ("fast", "slow")
    for n in (1, 2)
]


@pytest.mark.parametrize(
    ("settings", "rate", "noise"),
    [
        (REPLAY, replay(0.02), 0.0),
        (REPLAY, replay(0.05), 0.02),
        (REPLAY, replay(0.1), 0.02),
        (CLUSTER, cluster(900, 6000, 110), 0.01),
        (CLUSTER, cluster(900, 6000, 400), 0.02),
        (CLUSTER, cluster(6000, 6500, 250), 0.01),
    ],
    ids=["2 workers", "5 workers", "10 workers", "cores bind", "knee inside", "storage is no matter"],
)
def test_adaptive_finds_the_full_grids_answer_for_a_quarter(settings: list[Setting], rate: Rate, noise: float) -> None:
    grid = FullGrid(settings, rate, noise)
    found, shown = grid.adapt()
    spent, whole = saving(grid.candidates, shown)
    assert spent <= whole / 4
    reference = grid.full_answer()
    same = steps_apart(found, reference, settings) <= 1
    # where storages are as good as each other, either is the answer
    assert same and abs(math.log(rate(found) / rate(reference))) < 0.06


def test_the_first_points_are_the_corners_and_the_middle() -> None:
    candidates = [Candidate(str(w), Setting(workers=w), 1.0) for w in (1, 2, 4, 8, 16)]
    assert spanning(candidates) == ["16", "1", "4"]


def test_a_single_point_is_measured_and_then_there_is_no_more_to_do() -> None:
    only = [Candidate("a", Setting(), 1.0)]
    empty = Group({}, {}, (), (), False, True)
    assert decide(empty, only, frozenset()).points == ("a",)
    done = decide(empty, only, frozenset({"a"}))
    assert done.settled and done.answer is None and "too few" in done.reason


def test_untrusted_points_are_not_proposed_again() -> None:
    candidates = [Candidate(str(w), Setting(workers=w), 1.0) for w in (1, 2, 4, 8, 16)]
    nothing = Group({}, {}, (), (), False, True)
    decision = decide(nothing, candidates, frozenset({"1", "16", "4"}))
    assert decision.points == ("2",) and "too few trusted" in decision.reason


def test_several_points_are_proposed_at_once_and_differ() -> None:
    grid = FullGrid(REPLAY, replay(0.05), 0.02)
    shown = frozenset(spanning(grid.candidates))
    decision = decide(grid.group(shown), grid.candidates, shown, count=3)
    assert len(set(decision.points)) == len(decision.points) <= 3
    assert not shown & set(decision.points)
