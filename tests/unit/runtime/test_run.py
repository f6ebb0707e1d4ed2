"""Decisions of a run that a healthy replay does not reach."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from runtime_support import events, of_kind, spec_of

from harness import catalog
from harness.comm.none import NoExchange
from harness.errors import UserError
from harness.layout import AttemptLayout
from harness.runtime.clock import SystemClock, VirtualClock, clock_for
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Batch, Ranks, StepOutcome
from harness.runtime.main import conduct
from harness.runtime.meeting import Meeting
from harness.runtime.run import Run
from harness.runtime.stepclock import StepClock


def run_of(directory: Path, world: int = 1, **axes: Any) -> Run:
    ranks = Ranks(rank=0, world=world, local_rank=0, local_world=1, node="n")
    clock = VirtualClock()
    writer = EventWriter(directory / "events.r0.jsonl", clock)
    return Run(spec_of(**axes), ranks, clock, writer, Meeting(directory, ranks, "s"), directory)


class Gathering(NoExchange):
    name = "scripted"

    def __init__(self, others: list[str]):
        self.others = others

    def gather_text(self, text: str) -> list[str]:
        return [text, *self.others]


class Digested:
    def digest(self) -> str:
        return "aa"


@pytest.mark.parametrize(("other", "same"), [("aa", True), ("ab", False)])
def test_ranks_that_differ_at_the_end_are_a_finding(tmp_path: Path, other: str, same: bool) -> None:
    run_of(tmp_path, world=2).check_ranks(Gathering([other]), Digested())  # type: ignore[arg-type]
    records = events(tmp_path)
    [check] = of_kind(records, "check")
    assert (check["name"], check["ok"], check["value"]) == ("ranks_identical", same, "aa")
    found = [(finding["code"], finding["evidence"]) for finding in of_kind(records, "finding")]
    assert found == ([] if same else [("params_diverged", {"digests": ["aa", "ab"]})])


@pytest.mark.parametrize(("world", "exchange"), [(1, Gathering([])), (2, NoExchange())])
def test_ranks_that_share_nothing_are_not_compared(tmp_path: Path, world: int, exchange: NoExchange) -> None:
    run_of(tmp_path, world=world).check_ranks(exchange, Digested())  # type: ignore[arg-type]
    assert events(tmp_path) == []


class Assessed(Digested):
    def __init__(self, **found: Any):
        self.found = found

    def quality(self) -> dict[str, Any]:
        return self.found


def test_a_session_that_knows_how_good_its_model_is_says_so(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    for session in (Digested(), Assessed(), Assessed(auroc=0.75, samples=8)):
        run.note_quality(session)  # type: ignore[arg-type]
    [quality] = of_kind(events(tmp_path), "quality")
    assert (quality["auroc"], quality["samples"]) == (0.75, 8)


def test_a_framework_that_is_not_installed_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalog.ENGINES, "torch", "a_module_that_is_not_there:Engine")
    run = run_of(tmp_path, framework="torch")
    with pytest.raises(UserError, match=r"torch does not load on n: No module named .*\.\[torch\]"):
        run.prepare_engine()
    assert [record["name"] for record in of_kind(events(tmp_path), "phase")] == ["import"]


def test_what_cannot_be_closed_does_not_keep_the_rest_open(tmp_path: Path) -> None:
    closed: list[str] = []

    class Part:
        def __init__(self, name: str, error: Exception | None = None):
            self.name, self.error = name, error

        def close(self) -> None:
            closed.append(self.name)
            if self.error:
                raise self.error

    stuck = RuntimeError("worker 3 does not stop")
    run = run_of(tmp_path)
    run._parts += [Part("sampler"), Part("pipeline", stuck), Part("session")]
    assert run.close() == [stuck]
    assert closed == ["session", "pipeline", "sampler"]
    assert run.close() == []


def test_threads_are_the_points_or_one_for_each_core(tmp_path: Path) -> None:
    assert run_of(tmp_path, cpu_cores=6, ranks_per_node=2).threads == 3
    (tmp_path / "b").mkdir()
    assert run_of(tmp_path / "b", cpu_cores=6, parallel_threads=64).threads == 64


@pytest.mark.parametrize(
    ("axes", "kind"),
    [
        ({}, VirtualClock),
        ({"options": {"clock": "virtual"}}, VirtualClock),
        ({"options": {"clock": "real"}}, SystemClock),
        ({"workload": "dcgan_mnist", "framework": "torch"}, SystemClock),
    ],
)
def test_only_replay_runs_on_virtual_time(axes: dict[str, Any], kind: type) -> None:
    assert type(clock_for(spec_of(**axes))) is kind


def test_virtual_time_is_exact_and_never_goes_back() -> None:
    clock = VirtualClock()
    for _ in range(1000):
        clock.sleep(0.1)
    assert clock.now() == 100.0
    with pytest.raises(ValueError):
        clock.sleep(-0.1)


def test_an_unknown_clock_is_refused() -> None:
    with pytest.raises(UserError, match="unknown clock 'virtul'; did you mean 'virtual'"):
        clock_for(spec_of(options={"clock": "virtul"}))


class Stuck:
    def close(self) -> None:
        raise RuntimeError("worker 3 does not stop")


def test_a_part_that_does_not_stop_is_told_and_the_run_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(tmp_path)
    monkeypatch.setattr(Run, "measure", lambda self: self._parts.append(Stuck()))
    assert conduct(run) == 0
    records = events(tmp_path)
    [finding] = of_kind(records, "finding")
    assert finding["code"] == "close_failed"
    assert "worker 3 does not stop" in finding["evidence"]["error"]
    assert records[-1]["ok"] is True


class Scattered:
    """Steps whose times scatter so much that no interval becomes narrow, or not at all."""

    def __init__(self, clock: VirtualClock, seconds: Callable[[], float]):
        self._clock, self._seconds = clock, seconds

    def batches(self) -> Iterator[Batch]:
        while True:
            yield Batch(None, 8)

    def occupancy(self) -> int | None:
        return None

    def to_device(self, batch: Batch) -> Batch:
        return batch

    def step(self, batch: Batch) -> StepOutcome:
        self._clock.sleep(self._seconds())
        return StepOutcome(0.0)


@pytest.mark.parametrize("scatter", [True, False])
def test_a_walltime_that_comes_before_the_interval_is_told(tmp_path: Path, scatter: bool) -> None:
    """580 of 600 s may be used; exponential times of 2 s are known to 2 % after some thousands of seconds."""
    run, generator = run_of(tmp_path, interval_percent=2.0, steps_timed=25), random.Random(3)
    both = Scattered(run.clock, lambda: generator.expovariate(0.5) if scatter else 2.0)  # type: ignore[arg-type]
    run.run_steps(StepClock(both, both, run.clock, run.writer), NoExchange())  # type: ignore[arg-type]
    records = events(tmp_path)
    assert [finding["code"] for finding in of_kind(records, "finding")] == ["interval_not_reached"] * scatter
    [length] = of_kind(records, "length")
    assert length["verdict"] == ("late" if scatter else "enough")
    assert run.clock.now() < 600


@pytest.mark.parametrize(("staging_s", "last_s"), [(0.0, 570.0), (150.0, 420.0)])
def test_what_a_run_took_to_begin_counts_once_against_its_walltime(
    tmp_path: Path, staging_s: float, last_s: float
) -> None:
    """300 of 600 s for imports and for filling the page cache, and what its job took before; 30 s are left to end."""
    run, generator = run_of(tmp_path, interval_percent=0.01, steps_timed=5), random.Random(3)
    claim = AttemptLayout(tmp_path).claim
    claim.mkdir()
    made_s = claim.stat().st_mtime - staging_s - 300
    os.utime(claim, (made_s, made_s))
    run.clock.sleep(300.0)
    both = Scattered(run.clock, lambda: generator.uniform(0.5, 1.5))  # type: ignore[arg-type]
    run.run_steps(StepClock(both, both, run.clock, run.writer), NoExchange())  # type: ignore[arg-type]
    [length] = of_kind(events(tmp_path), "length")
    assert length["verdict"] == "late"
    # a look comes after a quarter more steps than the one before
    assert 300 + (last_s - 300) / 1.25**2 < run.clock.now() < last_s
