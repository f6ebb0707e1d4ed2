"""Each finding that no other test holds: a run that has the fault gets it, one that has not does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis import findings
from harness.analysis.campaign_findings import advised
from harness.analysis.collect import collect
from harness.analysis.findings import Finding
from harness.analysis.points import PointResult, point_results
from harness.files import parse_line, sealed_line
from harness.layout import AttemptLayout
from harness.model.axes import Axes

STEPS = [1.0] + [0.2] * 40
BYTES = 60_000 * 10_000


def axes_of(**axes: Any) -> Axes:
    return Axes(**{"workload": "replay", "framework": "none", "steps_timed": 40, **axes})


def found_in(root: Path, run: FakeRun, edits: Mapping[str, Mapping[str, Any]] | None = None, **axes: Any) -> set[str]:
    """Codes of one run; ``edits``: fields of its events to change, by kind."""
    campaign = FakeCampaign(root)
    layout = campaign.add(axes_of(**axes), run)
    if edits:
        edited(layout, edits)
    campaign.save()
    return {finding.code for finding in findings.parse(collect(campaign.layout)["findings"].iloc[0])}


def edited(layout: AttemptLayout, edits: Mapping[str, Mapping[str, Any]]) -> None:
    for path in layout.root.glob("events.r*.jsonl"):
        records = [parse_line(line) or {} for line in path.read_bytes().splitlines()]
        path.write_text("".join(sealed_line(record | dict(edits.get(record["event"], {}))) for record in records))


def io(at: str, t_s: float, rchar: int) -> dict[str, Any]:
    return {"event": "io", "t_s": t_s, "at": at, "read_bytes": 0, "rchar_bytes": rchar, "cpu_s": 0.0}


@pytest.mark.parametrize(("state", "is_found"), [("unknown", True), ("warm", True), ("cold", False)])
def test_a_cache_that_did_not_become_cold(tmp_path: Path, state: str, is_found: bool) -> None:
    cache = {"event": "cache", "t_s": 0.0, "wanted": "cold", "state": state}
    assert ("cache_not_as_wanted" in found_in(tmp_path, FakeRun([STEPS], events=[cache]), cache="cold")) is is_found


@pytest.mark.parametrize(("allowed", "is_found"), [([0], True), ([0, 1, 2], True), ([2, 3], False)])
def test_cores_that_are_not_those_asked_for(tmp_path: Path, allowed: list[int], is_found: bool) -> None:
    edits = {"affinity": {"allowed_cpus": allowed}}
    assert ("cores_not_achieved" in found_in(tmp_path, FakeRun([STEPS]), edits, cpu_cores=2)) is is_found


@pytest.mark.parametrize(("allowed", "cores", "is_found"), [([0, 1, 4, 5], 2, False), ([0, 4], 1, True)])
def test_hardware_threads_of_ones_own_cores_are_no_cores_more(
    tmp_path: Path, allowed: list[int], cores: int, is_found: bool
) -> None:
    """Bound to two cores of two hardware threads each, as launchers bind, a rank has four CPUs."""
    edits = {"affinity": {"allowed_cpus": allowed, "allowed_cores": cores}}
    assert ("cores_not_achieved" in found_in(tmp_path, FakeRun([STEPS]), edits, cpu_cores=2)) is is_found


@pytest.mark.parametrize(("worker", "is_found"), [([0, 1, 2, 3], True), ([0, 1], False), (None, False)])
def test_a_worker_on_other_cpus_than_its_rank(tmp_path: Path, worker: list[int] | None, is_found: bool) -> None:
    later = {"event": "affinity", "t_s": 9.0, "requested_cores": 2, "allowed_cpus": [0, 1]}
    run = FakeRun([STEPS], events=[later | {"worker_allowed_cpus": worker}])
    assert ("worker_cpus_differ" in found_in(tmp_path, run, cpu_cores=2)) is is_found


@pytest.mark.parametrize(
    ("memory", "cache", "read", "is_found"),
    [
        (64 << 30, "unknown", 40 * 32 * 10_000, True),
        (1 << 30, "unknown", 40 * 32 * 10_000, False),
        (64 << 30, "warm", 40 * 32 * 10_000, False),
        (64 << 30, "unknown", 1000, False),
    ],
)
def test_memory_that_can_hold_all_data(tmp_path: Path, memory: int, cache: str, read: int, is_found: bool) -> None:
    """A set of 600 MB read through the page cache whose state nobody set: small against memory, or not."""
    data = {"event": "data", "t_s": 0.0, "bytes": BYTES}
    state = {"event": "cache", "t_s": 0.0, "wanted": cache, "state": cache}
    run = FakeRun([STEPS], events=[data, state, io("begin", 0.0, 0), io("end", 9.0, read)])
    edits = {"provenance": {"host": {"cpu_model": "Test CPU", "memory_bytes": memory}}}
    assert ("memory_holds_data" in found_in(tmp_path, run, edits, cache=cache)) is is_found


@pytest.mark.parametrize(("steps", "is_found"), [([], True), (STEPS, False)])
def test_a_success_without_steps(tmp_path: Path, steps: list[float], is_found: bool) -> None:
    assert ("no_steps" in found_in(tmp_path, FakeRun([steps]))) is is_found


@pytest.mark.parametrize(("behind", "is_found"), [(3, True), (0, False)])
def test_a_rank_that_recorded_fewer_steps(tmp_path: Path, behind: int, is_found: bool) -> None:
    run = FakeRun([STEPS, STEPS[: len(STEPS) - behind]])
    assert ("rank_behind" in found_in(tmp_path, run, cpu_cores=2, ranks_per_node=2)) is is_found


@pytest.mark.parametrize(("equal", "is_found"), [(False, True), (True, False)])
def test_ranks_that_end_with_other_parameters(tmp_path: Path, equal: bool, is_found: bool) -> None:
    check = {"event": "check", "t_s": 9.0, "name": "ranks_identical", "ok": equal, "value": "aa"}
    assert ("ranks_diverged" in found_in(tmp_path, FakeRun([STEPS], events=[check]))) is is_found


@pytest.mark.parametrize(
    ("env", "axes", "is_found"),
    [
        ({}, {}, True),
        ({"OMP_WAIT_POLICY": "PASSIVE"}, {}, False),
        ({"GOMP_SPINCOUNT": "0"}, {}, False),
        ({}, {"parallel_threads": 1}, False),
        ({}, {"workers": 0}, False),
        ({}, {"gpus_per_rank": 1}, False),
        ({}, {"cpu_cores": 4}, False),
        ({}, {"framework": "tensorflow"}, False),
    ],
)
def test_threads_that_spin_on_the_loaders_cores(
    tmp_path: Path, env: dict[str, str], axes: dict[str, Any], is_found: bool
) -> None:
    given = {"workload": "resnet20_cifar10", "framework": "torch", "workers": 1, "cpu_cores": 2, "parallel_threads": 2}
    found = found_in(tmp_path, FakeRun([STEPS]), {"provenance": {"env": env}}, **(given | axes))
    assert ("threads_spin" in found) is is_found


@pytest.mark.parametrize(("timed", "is_found"), [(9, True), (20, False)])
def test_a_window_too_short_for_an_interval(tmp_path: Path, timed: int, is_found: bool) -> None:
    assert ("short_window" in found_in(tmp_path, FakeRun([[1.0] + [0.2] * timed]), steps_timed=timed)) is is_found


@pytest.mark.parametrize(("phi", "is_found"), [(0.9, True), (0.0, False)])
def test_steps_too_alike_for_their_number(tmp_path: Path, phi: float, is_found: bool) -> None:
    generator = np.random.default_rng(5)
    level, steps = 0.0, []
    for _ in range(30):
        level = phi * level + (1 - phi**2) ** 0.5 * generator.normal()
        steps.append(0.2 * (1 + 0.02 * level))
    assert ("few_independent_steps" in found_in(tmp_path, FakeRun([[1.0, *steps]]), steps_timed=30)) is is_found


def noisy(count: int = 60) -> list[float]:
    return [1.0, *(0.2 * (1 + 0.03 * np.random.default_rng(1).normal(size=count)))]


def test_a_run_without_faults_has_no_findings(tmp_path: Path) -> None:
    """Everything on record, two ranks alike, a steady buffer, data read once, little waiting."""
    data = {"event": "data", "t_s": 0.0, "bytes": BYTES}
    cache = {"event": "cache", "t_s": 0.0, "wanted": "warm", "state": "warm"}
    read = 61 * 32 * 10_000
    cpu = [io("begin", 0.0, 0), io("end", 13.0, read) | {"cpu_s": 12.0}]
    check = {"event": "check", "t_s": 13.0, "name": "ranks_identical", "ok": True, "value": "aa"}
    run = FakeRun([noisy()] * 2, waits=[0.0] + [0.01] * 60, occupancy=[4] * 61, events=[data, cache, *cpu, check])
    axes = {"cpu_cores": 2, "ranks_per_node": 2, "comm": "mpi4py", "cache": "warm", "steps_timed": 60}
    assert found_in(tmp_path, run, **axes) == set()


FAULTS: dict[str, FakeRun] = {
    "buffer_drain": FakeRun([noisy()] * 2, occupancy=[*range(30, 0, -1), *[0] * 31]),
    "not_steady": FakeRun([[1.0, *np.linspace(0.1, 0.4, 60)]] * 2),
    "rank_imbalance": FakeRun([noisy(), [1.4 * d for d in noisy()]]),
    "events_torn": FakeRun([noisy()] * 2, tail='{"event": "pha'),
    "rank_missing": FakeRun([noisy(), None]),
    "run_incomplete": FakeRun([noisy()] * 2, exit_code=1),
    "pipeline_bound": FakeRun([noisy()] * 2, waits=[0.0] + [0.1] * 60),
}


@pytest.mark.parametrize("code", FAULTS)
def test_one_fault_brings_its_finding(tmp_path: Path, code: str) -> None:
    axes = {"cpu_cores": 2, "ranks_per_node": 2, "steps_timed": 60}
    assert code not in found_in(tmp_path / "without", FakeRun([noisy()] * 2), **axes)
    assert code in found_in(tmp_path / "with", FAULTS[code], **axes)


def results_of(root: Path, runs: Mapping[tuple[int, ...], FakeRun], names: tuple[str, ...]) -> list[PointResult]:
    campaign = FakeCampaign(root, varied=names)
    for values, run in runs.items():
        for repeat in range(2):
            campaign.add(axes_of(**dict(zip(names, values, strict=True))), run, repeat=repeat)
    campaign.save()
    return point_results(collect(campaign.layout))


def test_one_repeat_is_told_and_two_are_not(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    for seed, repeats in ((1, 1), (2, 2)):
        for repeat in range(repeats):
            campaign.add(axes_of(seed=seed), FakeRun([STEPS]), repeat=repeat)
    campaign.save()
    codes = {r.axes["seed"]: {f.code for f in r.findings} for r in point_results(collect(campaign.layout))}
    assert "one_repeat" in codes[1]
    assert "one_repeat" not in codes[2]


def advice(results: list[PointResult], code: str, **axes: Any) -> str:
    [result] = [r for r in results if all(r.axes[name] == value for name, value in axes.items())]
    [finding] = [f for f in result.findings if f.code == code]
    told: Finding = advised(finding, result, results)
    return told.advice


def test_advice_on_threads_knows_which_numbers_were_tried(tmp_path: Path) -> None:
    runs = {(1,): FakeRun([[1.0] + [0.2] * 40]), (64,): FakeRun([[1.0] + [0.3] * 40])}
    results = results_of(tmp_path, runs, ("parallel_threads",))
    told = advice(results, "threads_oversubscribed", parallel_threads=64)
    assert told == "All else equal, it ran faster here with 1 parallel thread (× 1.50): use that."


def test_advice_on_memory_knows_that_the_cache_was_varied(tmp_path: Path) -> None:
    data = {"event": "data", "t_s": 0.0, "bytes": BYTES}
    campaign = FakeCampaign(tmp_path, varied=("cache",))
    for cache in ("unknown", "cold", "warm"):
        state = {"event": "cache", "t_s": 0.0, "wanted": cache, "state": cache}
        run = FakeRun([STEPS], events=[data, state, io("begin", 0.0, 0), io("end", 9.0, 40 * 32 * 10_000)])
        layout = campaign.add(axes_of(cache=cache), run)
        edited(layout, {"provenance": {"host": {"cpu_model": "Test CPU", "memory_bytes": 64 << 30}}})
    campaign.save()
    results = point_results(collect(campaign.layout))
    told = advice(results, "memory_holds_data", cache="unknown")
    assert told == "Cold and warm were measured here, too: rest on those points, not on this one."


def test_advice_without_other_points_is_the_findings_own(tmp_path: Path) -> None:
    results = results_of(tmp_path, {(64,): FakeRun([STEPS])}, ("parallel_threads",))
    assert advice(results, "threads_oversubscribed").startswith("Threads beyond the cores only wait")


def test_every_code_has_a_severity_that_is_known() -> None:
    assert {severity for severity, _ in findings.CODES.values()} == {"error", "warning", "info"}
    assert json.loads(findings.to_json([findings.make("one_repeat")]))[0]["severity"] == "info"
