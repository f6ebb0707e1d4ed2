"""Clocks that jump, loaders that starve, evaluation inside a step: found and named, never averaged in silently."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis import findings, row
from harness.analysis.campaigns import attempts, state_of
from harness.analysis.evidence import read_run
from harness.files import sealed_line
from harness.model.axes import Axes

DURATIONS = [1.0] + [0.2] * 60


def judged(root: Path, run: FakeRun, **axes: Any) -> tuple[dict[str, Any], dict[str, findings.Finding]]:
    campaign = FakeCampaign(root)
    campaign.add(Axes(**{"workload": "replay", "framework": "none", "steps_timed": 60, **axes}), run)
    campaign.save()
    [attempt] = attempts(campaign.layout)
    evidence = read_run(attempt.layout)
    state, _ = state_of(attempt, evidence.spec)
    cells, found, _ = row.run_cells(evidence, state)
    return cells, {finding.code: finding for finding in found}


def io(at: str, t_s: float, cpu_s: float, rchar: int = 0) -> dict[str, Any]:
    return {"event": "io", "t_s": t_s, "at": at, "read_bytes": 0, "rchar_bytes": rchar, "cpu_s": cpu_s}


@pytest.mark.parametrize("jump_s", [-100.0, -0.5])
def test_a_clock_that_runs_back_gives_no_number(tmp_path: Path, jump_s: float) -> None:
    cells, _ = judged(tmp_path / "a", FakeRun([DURATIONS]))
    assert cells["images_per_s"] == pytest.approx(160.0)
    campaign = FakeCampaign(tmp_path / "b")
    layout = campaign.add(Axes(workload="replay", framework="none", steps_timed=60), FakeRun([DURATIONS]))
    campaign.save()
    lines = [json.loads(line) for line in layout.events(0).read_text().splitlines()]
    for line in lines:
        line.pop("crc")
        if line["event"] == "steps":
            for name in ("begin_s", "end_s"):
                line[name] = [t + (jump_s if n >= 30 else 0.0) for n, t in enumerate(line[name])]
    layout.events(0).write_text("".join(map(sealed_line, lines)))
    [attempt] = attempts(campaign.layout)
    run = read_run(attempt.layout)
    cells, found, measured = row.run_cells(run, state_of(attempt, run.spec)[0])
    assert measured is None
    assert "images_per_s" not in cells
    assert "clock_jumped" in {finding.code for finding in found}


@pytest.mark.parametrize(("step_s", "jumped"), [(1000.0, True), (40.0, False)])
def test_a_clock_that_leaps_ahead_gives_no_number(tmp_path: Path, step_s: float, jumped: bool) -> None:
    """The job lasted 60 s: a step of 1000 s cannot be; one of 40 s was a stall, and counts."""
    durations = [*DURATIONS[:30], step_s, *DURATIONS[31:]]
    cells, found = judged(tmp_path, FakeRun([durations]), options={"clock": "real"})
    assert ("clock_jumped" in found) is jumped
    assert ("images_per_s" in cells) is not jumped


def test_a_corrected_wall_clock_moves_nothing(tmp_path: Path) -> None:
    """Samples are matched to steps by the monotonic clock; their wall clock jumps by an hour in the middle."""
    run = FakeRun([DURATIONS])
    campaign = FakeCampaign(tmp_path)
    layout = campaign.add(Axes(workload="replay", framework="none", steps_timed=60), run)
    campaign.save()
    samples = [
        {"t_s": float(t), "unix_s": 1001.0 + t + (3600 if t > 7 else 0), "cpu_percent": [50.0], "rss_bytes": 7}
        | {"gpu": [{"util_percent": 25, "memory_bytes": 1, "power_w": 100.0}], "disk_read_bytes": 1000 * t}
        for t in range(14)
    ]
    layout.samples("n1").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    [attempt] = attempts(campaign.layout)
    evidence = read_run(attempt.layout)
    cells, _, _ = row.run_cells(evidence, state_of(attempt, evidence.spec)[0])
    assert cells["cpu_percent_mean"] == 50.0
    assert cells["gpu_idle_share"] == 0.75
    assert cells["images_per_joule"] == pytest.approx(1.6)
    assert cells["disk_read_per_s"] == pytest.approx(1000.0)


def test_waiting_with_idle_cores_is_told_from_waiting_with_busy_ones(tmp_path: Path) -> None:
    waits = [0.0] + [0.1] * 60
    idle = FakeRun([DURATIONS], waits=waits, events=[io("begin", 0.0, 0.0), io("end", 13.0, 13.0)])
    cells, found = judged(tmp_path / "a", idle, cpu_cores=4)
    assert cells["cores_used"] == pytest.approx(1.0)
    assert cells["au_percent"] == pytest.approx(50.0)
    assert found["input_bound_idle_cores"].evidence["cores_requested"] == 4
    assert "loads in the training thread" in found["input_bound_idle_cores"].advice
    busy = FakeRun([DURATIONS], waits=waits, events=[io("begin", 0.0, 0.0), io("end", 13.0, 50.0)])
    _, found = judged(tmp_path / "b", busy, cpu_cores=4)
    assert "pipeline_bound" in found
    assert "input_bound_idle_cores" not in found


def codes_on_busy_cpus(tmp_path: Path, run: FakeRun, cpu_percent: list[float]) -> set[str]:
    """Codes of the findings on a run of 13 s with 4 cores, while the CPUs of its node are so busy."""
    campaign = FakeCampaign(tmp_path)
    layout = campaign.add(Axes(workload="replay", framework="none", cpu_cores=4, steps_timed=60), run)
    campaign.save()
    samples = [{"t_s": float(t), "unix_s": 0.0, "cpu_percent": cpu_percent, "rss_bytes": 1} for t in range(13)]
    layout.samples("n1").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    [attempt] = attempts(campaign.layout)
    evidence = read_run(attempt.layout)
    _, found, _ = row.run_cells(evidence, state_of(attempt, evidence.spec)[0])
    return {finding.code for finding in found}


@pytest.mark.parametrize(("percent", "shared"), [(98.0, True), (27.0, False)])
def test_cores_that_others_use_are_not_idle(tmp_path: Path, percent: float, shared: bool) -> None:
    """The run used 1 of 4 cores: with the CPUs 98 % busy others had the rest; at 27 % they were idle."""
    run = FakeRun([DURATIONS], waits=[0.0] + [0.1] * 60, events=[io("begin", 0.0, 0.0), io("end", 13.0, 13.0)])
    codes = codes_on_busy_cpus(tmp_path, run, [percent] * 8)
    assert ("others_use_the_cores" in codes) is shared
    assert ("input_bound_idle_cores" in codes) is not shared


@pytest.mark.parametrize(
    ("percent", "cpu_s", "is_found"),
    [
        (1.0, 0.13, False),  # 0.04 cores were busy and 0.01 the run's: nearly all of nothing
        (5.0, 0.13, False),  # others had 0.19 cores
        (6.0, 0.13, True),  # others had 0.23 cores, 6 % of them
        (98.0, 45.0, False),  # others had 0.46 cores, 12 % of what was busy
    ],
)
def test_others_must_have_taken_a_twentieth_of_the_cores(
    tmp_path: Path, percent: float, cpu_s: float, is_found: bool
) -> None:
    run = FakeRun([DURATIONS], events=[io("begin", 0.0, 0.0), io("end", 13.0, cpu_s)])
    assert ("others_use_the_cores" in codes_on_busy_cpus(tmp_path, run, [percent] * 4)) is is_found


def test_a_loader_that_counts_no_cpu_time_is_not_called_idle(tmp_path: Path) -> None:
    _, found = judged(tmp_path, FakeRun([DURATIONS], waits=[0.0] + [0.1] * 60), cpu_cores=4)
    assert "pipeline_bound" in found


def test_evaluation_inside_timed_steps_is_found_by_its_period(tmp_path: Path) -> None:
    every_tenth = [1.0] + [1.0 if n % 10 == 0 else 0.2 for n in range(1, 61)]
    _, found = judged(tmp_path / "a", FakeRun([every_tenth]))
    assert found["periodic_stall"].evidence == {"every_steps": 10}
    at_random = [1.0] + [1.0 if n in (12, 19, 33, 58) else 0.2 for n in range(1, 61)]
    _, found = judged(tmp_path / "b", FakeRun([at_random]))
    assert "periodic_stall" not in found


def test_threads_beyond_the_cores(tmp_path: Path) -> None:
    _, found = judged(tmp_path / "a", FakeRun([DURATIONS]), cpu_cores=2, parallel_threads=64)
    assert found["threads_oversubscribed"].evidence == {"threads": 64, "workers": 0, "cores": 2}
    _, found = judged(tmp_path / "b", FakeRun([DURATIONS]), cpu_cores=2, parallel_threads=4)
    assert "threads_oversubscribed" not in found


@pytest.mark.parametrize(
    ("share", "buffer", "is_found"), [(1.0, 100, True), (0.5, 100, False), (1.0, 1000, False), (4.0, 1000, True)]
)
def test_all_data_read_by_every_rank(tmp_path: Path, share: float, buffer: int, is_found: bool) -> None:
    """Two ranks of 61 steps of 32 images need 3,904 samples of 10 kB; each reads ``share`` of all of them.

    A buffer of 1000 samples on each rank may have taken in 2,000 ahead, and as many again for the next pass.
    """
    size = 60_000 * 10_000
    read = int(share * 2 * 61 * 32 * 10_000)
    events = [{"event": "data", "t_s": 0, "bytes": size}, io("begin", 0.0, 0.0), io("end", 13.0, 9.0, read)]
    run = FakeRun([DURATIONS, DURATIONS], events=events)
    _, found = judged(tmp_path, run, cpu_cores=2, ranks_per_node=2, shuffle_buffer=buffer)
    assert ("every_rank_reads_all" in found) is is_found


def test_no_number_is_not_a_number(tmp_path: Path) -> None:
    cells, _ = judged(tmp_path, FakeRun([[1.0, 0.2]]))
    assert not cells["steady"]
    assert math.isnan(cells.get("images_per_s_low", math.nan))
