"""The benchmark of workloads: who has which turns, and what its rows say."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import workloads_pairs

    return workloads_pairs


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import bench_workloads

    return bench_workloads


def test_each_side_has_a_block_in_every_round_of_every_sitting(pairs: ModuleType) -> None:
    calls: list[tuple[int, str, int, int]] = []
    built: list[str] = []

    def side(name: str, seconds: float) -> object:
        sitting = built.count(name)
        built.append(name)

        def run(lead: int, steps: int) -> object:
            calls.append((sitting, name, lead, steps))
            return pairs.Spent(seconds * steps, 2 * seconds * steps)

        return run

    makers = {"ours": lambda: side("ours", 0.003), "theirs": lambda: side("theirs", 0.004)}
    found = pairs.in_turn(makers, sittings=2, rounds=3, steps=5, lead=4)

    assert sorted(built) == ["ours", "ours", "theirs", "theirs"]
    for sitting in range(2):
        for name in makers:
            blocks = [(lead, steps) for at, who, lead, steps in calls if (at, who) == (sitting, name)]
            assert blocks == [(4, pairs.WARMING), *[(4, 5)] * 3]
    assert list(found) == ["ours", "theirs"]
    assert [len(readings) for readings in found.values()] == [6, 6]
    assert found["ours"][0] == pytest.approx((3.0, 6.0))
    assert found["theirs"][-1] == pytest.approx((4.0, 8.0))


def test_sides_that_run_one_by_one_are_built_for_each_block_and_gone_after_it(pairs: ModuleType) -> None:
    living: set[str] = set()
    done: list[tuple[str, int, int]] = []

    class Side:
        def __init__(self, name: str):
            assert not living
            self.name = name
            living.add(name)

        def __del__(self) -> None:
            living.remove(self.name)

        def __call__(self, lead: int, steps: int) -> object:
            done.append((self.name, lead, steps))
            return pairs.Spent(0.002 * steps, 0.004 * steps)

    found = pairs.one_by_one({"ours": lambda: Side("ours"), "theirs": lambda: Side("theirs")}, rounds=3, steps=5)
    assert not living
    assert done[::2] == [(name, 1, pairs.WARMING) for name, _, _ in done[1::2]]
    assert sorted(done[1::2]) == [("ours", 1, 5)] * 3 + [("theirs", 1, 5)] * 3
    assert found == {name: [pytest.approx((2.0, 4.0))] * 3 for name in ("ours", "theirs")}


def test_what_leads_is_not_counted(pairs: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    monkeypatch.setattr(pairs, "now", lambda: pairs.Spent(sum(done), 10 * sum(done)))
    assert pairs.timed(done.append)(2, 7) == (7, 70)


def test_a_row_has_the_ratio_by_the_clock_and_in_cpu_time(bench: ModuleType) -> None:
    row = bench.row_of("it", [[2.0, 1.0], [4.0, 1.0]], "plain", [[2.0, 2.0], [4.0, 2.0]])
    assert (row.ours, row.theirs, row.unit) == (3.0, 3.0, "ms/step")
    assert row.ratio.value == pytest.approx(1.0)
    assert row.met is True
    assert row.note == "2 rounds; CPU time: 0.5 [0.5, 0.5]"


@pytest.mark.parametrize(
    ("ours_ms", "met"),
    [((0.99, 1.0, 0.98), True), ((1.02, 0.99, 1.0, 1.01), True), ((1.3, 0.9), None), ((1.1, 1.11, 1.12), False)],
)
def test_a_wide_interval_neither_excuses_nor_condemns(
    bench: ModuleType, ours_ms: tuple[float, ...], met: bool | None
) -> None:
    theirs = [[1.0, 1.0]] * len(ours_ms)
    assert bench.row_of("it", [[ms, 1.0] for ms in ours_ms], "plain", theirs).met is met
