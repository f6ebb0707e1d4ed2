"""The ladder of scripted runs: parts known by construction, and what is said where runs and rungs disagree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from evidence_support import FakeCampaign, FakeRun

from harness.analysis.collect import collect
from harness.analysis.ladder import Ladder, ladders
from harness.analysis.points import point_results
from harness.cli.stalls import stalls
from harness.model.axes import Axes

FILES = {
    "workload": "resnet_imagenet",
    "framework": "torch",
    "pipeline": "torch_files",
    "dataset": "synthetic:imagenet",
}
#: rung → (axes in which it differs, seconds per step, of which waiting)
RUNGS: dict[str, tuple[dict[str, Any], float, float]] = {
    "compute": ({"feed": "device", "comm": "none"}, 0.100, 0.0),
    "exchange": ({"feed": "device"}, 0.120, 0.0),
    "copy": ({"feed": "host"}, 0.125, 0.0),
    "preparation": ({"pipeline": "torch_memory", "encoding": "npy"}, 0.140, 0.015),
    "read": ({"cache": "warm"}, 0.200, 0.075),
    "fetch": ({"cache": "cold"}, 0.260, 0.135),
    "as asked": ({}, 0.204, 0.079),
}
PARTS = {"compute": 0.1, "exchange": 0.02, "copy": 0.005, "preparation": 0.015, "read": 0.06, "fetch": 0.06}


def climbed(root: Path, rungs: dict[str, tuple[dict[str, Any], float, float]], noise: float = 0.0) -> Ladder:
    generator = np.random.default_rng(8)
    campaign = FakeCampaign(root)
    for own, step_s, wait_s in rungs.values():
        axes = Axes(**{**FILES, "comm": "mpi4py", "ranks_per_node": 2, "cpu_cores": 2, "steps_timed": 60, **own})
        cache = [{"event": "cache", "t_s": 0, "wanted": axes.cache, "state": axes.cache}]
        for repeat in range(3):
            level = step_s + noise * generator.normal()
            run = FakeRun([[1.0] + [level] * 60] * 2, waits=[0.0] + [wait_s] * 60, events=cache)
            campaign.add(axes, run, repeat=repeat)
    campaign.save()
    [ladder] = ladders(point_results(collect(campaign.layout)))
    return ladder


def test_each_part_is_what_its_rung_adds(tmp_path: Path) -> None:
    ladder = climbed(tmp_path, RUNGS)
    assert {part.label: part.seconds for part in ladder.parts} == pytest.approx(PARTS)
    assert ladder.measured_s == pytest.approx(0.204)
    assert ladder.residual is not None
    # the point as asked found most of its files in memory
    assert ladder.residual.seconds == pytest.approx(0.204 - 0.260)
    assert ladder.disagreement == ""
    assert ladder.recorded["wait"] == pytest.approx(0.135)


def test_missing_rungs_leave_wider_parts(tmp_path: Path) -> None:
    some = {name: rung for name, rung in RUNGS.items() if name not in ("preparation", "exchange", "fetch")}
    ladder = climbed(tmp_path, some)
    found = {part.label: part.seconds for part in ladder.parts}
    assert found == pytest.approx({"compute": 0.1, "exchange + copy": 0.025, "preparation + read": 0.075})


def test_the_intervals_hold_the_truth_under_noise(tmp_path: Path) -> None:
    ladder = climbed(tmp_path, RUNGS, noise=0.002)
    held = [part.low < PARTS[part.label] < part.high for part in ladder.parts]
    assert sum(held) >= 5, "one of six 95 % intervals may miss"
    assert all(part.high - part.low < 0.05 for part in ladder.parts)


def test_loaders_that_slow_the_computing_are_told(tmp_path: Path) -> None:
    """Nothing waits, yet a step takes twice as long as with a held batch: the loader has taken its cores."""
    slowed = {name: (own, step_s, 0.0) for name, (own, step_s, _) in RUNGS.items()}
    ladder = climbed(tmp_path, slowed)
    assert "computing takes +108% against the held batch: loaders take cores" in ladder.disagreement
    assert "the input adds 135 ms to a step, and 0 ms are waited for" in ladder.disagreement


def test_intervals_that_are_too_wide_leave_it_open(tmp_path: Path) -> None:
    """Repeats that scatter by a third of a step cannot tell whether input and waits agree, and it is not claimed."""
    ladder = climbed(tmp_path, RUNGS, noise=0.07)
    assert "too wide to say whether ladder and recorded waits agree" in ladder.disagreement


def test_rungs_that_were_repeated_and_steady_leave_no_doubt(tmp_path: Path) -> None:
    assert climbed(tmp_path, RUNGS).doubts == ()


def test_rungs_that_parts_should_not_rest_on_are_named(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    for name, (own, step_s, wait_s) in RUNGS.items():
        axes = Axes(**{**FILES, "comm": "mpi4py", "ranks_per_node": 2, "cpu_cores": 2, "steps_timed": 60, **own})
        cache = [{"event": "cache", "t_s": 0, "wanted": axes.cache, "state": axes.cache}]
        for repeat in range(1 if name == "copy" else 2):
            slower = 0.02 if name == "read" else 0.0
            durations = [1.0] + [step_s * (1 + slower * step) for step in range(60)]
            campaign.add(axes, FakeRun([durations] * 2, waits=[0.0] + [wait_s] * 60, events=cache), repeat=repeat)
    campaign.save()
    [ladder] = ladders(point_results(collect(campaign.layout)))
    assert ladder.doubts == (
        "run once: copy; their intervals know nothing of how runs differ",
        "do not rely on read: see `harness check`",
    )


def test_a_single_run_has_its_recorded_parts_only(tmp_path: Path) -> None:
    ladder = climbed(tmp_path, {"as asked": RUNGS["as asked"]})
    assert ladder.parts == ()
    assert ladder.residual is None
    assert ladder.recorded == pytest.approx({"wait": 0.079, "copy": 0.0, "compute": 0.125, "exchange": 0.0})


def test_the_verb_prints_parts_recorded_waits_and_json(tmp_path: Path) -> None:
    climbed(tmp_path, RUNGS)
    words = CliRunner().invoke(stalls, ["fake", "--results", str(tmp_path)])
    assert words.exit_code == 0, words.output
    lines = words.output.splitlines()
    assert "a step takes 204 ms, 61 % of it computing (AU)" in lines[0]
    assert "AU: accelerator utilisation as in MLPerf Storage" in words.output
    assert lines[2].split() == ["compute", "100", "100", "to", "100", "49%"]
    assert "recorded: wait 135 ms, compute 125 ms" in words.output
    [point] = json.loads(CliRunner().invoke(stalls, ["fake", "--results", str(tmp_path), "--json"]).output)
    assert {part["part"]: part["seconds"] for part in point["ladder"]} == pytest.approx({**PARTS, "residual": -0.056})
    assert point["disagreement"] is None


def test_one_rung_is_no_ladder_and_agrees_with_nothing(tmp_path: Path) -> None:
    climbed(tmp_path, {"fetch": RUNGS["fetch"]})
    words = CliRunner().invoke(stalls, ["fake", "--results", str(tmp_path)]).output
    assert "agree" not in words and "100%" not in words
    assert words.splitlines()[-1].startswith("No rungs were measured: `harness run SWEEP --ladder`")


def test_one_repeat_has_the_interval_of_its_steps(tmp_path: Path) -> None:
    """Steps of 0.1 s and 0.2 s with 10 % scatter: half-width 1.96 × 0.1 × 0.22 s / sqrt(100)."""
    generator = np.random.default_rng(2)
    campaign = FakeCampaign(tmp_path)
    for feed, step_s in (("device", 0.1), ("pipeline", 0.2)):
        axes = Axes(workload="replay", framework="none", feed=feed, steps_timed=100)
        campaign.add(axes, FakeRun([[1.0, *(step_s * (1 + 0.1 * generator.normal(size=100)))]]))
    campaign.save()
    [ladder] = ladders(point_results(collect(campaign.layout)))
    assert ladder.residual is not None
    assert (ladder.residual.high - ladder.residual.low) / 2 == pytest.approx(0.0044, rel=0.3)
    assert ladder.residual.low < 0.1 < ladder.residual.high


def test_points_that_differ_in_an_option_have_rungs_of_their_own(tmp_path: Path) -> None:
    """Images of 224 take ten times as long as those of 64, on every rung."""
    campaign = FakeCampaign(tmp_path, varied=("options.image_size", *RUNGS["preparation"][0], "feed", "cache"))
    for size, factor in ((64, 1), (224, 10)):
        for own, step_s, wait_s in RUNGS.values():
            more = {"comm": "mpi4py", "ranks_per_node": 2, "cpu_cores": 2, "steps_timed": 60}
            axes = Axes(**{**FILES, **more, "options": {"image_size": size}, **own})
            cache = [{"event": "cache", "t_s": 0, "wanted": axes.cache, "state": axes.cache}]
            waits = [0.0] + [wait_s * factor] * 60
            campaign.add(axes, FakeRun([[1.0] + [step_s * factor] * 60] * 2, waits=waits, events=cache))
    campaign.save()
    found = {one.result.axes["options.image_size"]: one for one in ladders(point_results(collect(campaign.layout)))}
    assert sorted(found) == [64, 224]
    for size, factor in ((64, 1), (224, 10)):
        parts = {part.label: part.seconds / factor for part in found[size].parts}
        assert parts == pytest.approx(PARTS), size


def test_without_a_held_batch_nothing_is_said_to_agree(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, varied=("cache",))
    for name in ("read", "fetch"):
        own, step_s, wait_s = RUNGS[name]
        axes = Axes(**{**FILES, "comm": "none", "steps_timed": 60, **own})
        cache = [{"event": "cache", "t_s": 0, "wanted": axes.cache, "state": axes.cache}]
        campaign.add(axes, FakeRun([[1.0] + [step_s] * 60], waits=[0.0] + [wait_s] * 60, events=cache))
    campaign.save()
    words = " ".join(CliRunner().invoke(stalls, ["fake", "--results", str(tmp_path)]).output.split())
    assert "waits agree" not in words
    assert "no rung with a held batch was measured" in words
