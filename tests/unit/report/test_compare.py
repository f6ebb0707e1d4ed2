"""Comparison by point id, and the regression check with its exit code."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from evidence_support import FakeCampaign, FakeRun

from harness.cli.main import cli
from harness.errors import UserError
from harness.model.axes import Axes


def campaign(root: Path, name: str, step_s: dict[int, float], spread: float = 0.01, **more: object) -> FakeCampaign:
    """Points by cores; three repeats within ± ``spread``."""
    made = FakeCampaign(root, name, repeats=3)
    for cores, seconds in step_s.items():
        for repeat in range(3):
            steps = [1.0] + [seconds * (1 + spread * (repeat - 1))] * 20
            made.add(Axes(workload="replay", cpu_cores=cores, steps_timed=20), FakeRun([steps], **more), repeat=repeat)  # type: ignore[arg-type]
    made.save()
    return made


def call(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["compare", *arguments, "--results", str(root)], standalone_mode=False)


def records(root: Path, *arguments: str) -> list[dict]:
    return json.loads(call(root, *arguments, "--json").output)


def test_points_are_joined_and_ratios_point_to_the_better(tmp_path: Path) -> None:
    campaign(tmp_path, "old", {1: 0.2, 2: 0.1, 4: 0.05})
    campaign(tmp_path, "new", {1: 0.1, 2: 0.1, 8: 0.02}, versions={"python": "3.12", "torch": "3.0"})
    (found,) = records(tmp_path, "old", "new")
    assert [p["verdict"] for p in found["points"]] == ["better", "not resolvable"]
    assert [p["ratio"]["value"] for p in found["points"]] == pytest.approx([2, 1])
    assert found["points"][0]["ratio"]["low"] < 2 < found["points"][0]["ratio"]["high"]
    assert found["geometric_mean"]["value"] == pytest.approx(2**0.5)
    assert (len(found["only_first"]), len(found["only_second"])) == (1, 1)
    assert found["differing"]["python_version"] == [["3.11.2"], ["3.12"]]
    (times,) = records(tmp_path, "old", "new", "--metric", "time_s")
    assert [p["ratio"]["value"] for p in times["points"]] == pytest.approx([2, 1])
    assert times["points"][0]["first"]["value"] == pytest.approx(4.0, rel=1e-3)


def test_normalised_columns(tmp_path: Path) -> None:
    campaign(tmp_path, "old", {1: 0.2, 4: 0.1}, spread=0.0)
    campaign(tmp_path, "new", {1: 0.1, 4: 0.08}, spread=0.0)
    first, second = records(tmp_path, "old", "new")[0]["points"]
    assert [side["per_core"] for side in first["normalised"]] == pytest.approx([160, 320])
    assert [side["per_core"] for side in second["normalised"]] == pytest.approx([80, 100])
    assert [side["of_ceiling"] for side in first["normalised"]] == pytest.approx([0.5, 0.8])
    assert first["normalised"][0]["per_gpu"] is None


def test_the_table_names_what_differs(tmp_path: Path) -> None:
    campaign(tmp_path, "old", {1: 0.2, 2: 0.1})
    campaign(tmp_path, "new", {1: 0.1, 2: 0.05}, versions={"python": "3.12", "torch": "2.13.0"})
    text = call(tmp_path, "old", "new", "--format", "markdown").output
    assert "Geometric mean of 2 points: 2" in text
    assert "Differs: python_version: 3.11.2 | 3.12" in text
    assert "per core, first" in text and "per GPU" not in text


def test_a_terminal_of_80_columns_shows_every_column(tmp_path: Path) -> None:
    campaign(tmp_path, "a-campaign-with-a-name-of-some-length", {1: 0.2, 2: 0.1})
    campaign(tmp_path, "another-campaign-with-a-longer-name", {1: 0.1, 2: 0.05})
    result = call(tmp_path, "a-campaign-with-a-name-of-some-length", "another-campaign-with-a-longer-name")
    assert result.output.count("better") >= 3
    assert max(len(line.rstrip()) for line in result.output.splitlines()) <= 80
    said = " ".join(result.output.split())
    assert "A: a-campaign-with-a-name-of-some-length. B: another-campaign-with-a-longer-name." in said
    assert "per core, B" in result.output and "of ceiling, B" in result.output
    assert "another-campaign-with-a-longer-name is better." in said


def test_the_sample_measured_twice_shows_no_difference(tmp_path: Path) -> None:
    sample = Path(__file__).resolve().parents[3] / "results" / "sample"
    for name in ("cores_workers", "cores_workers-again"):
        shutil.copytree(sample / name, tmp_path / name, ignore=shutil.ignore_patterns("runs.*", "steps.*", "plots"))
    shown = call(tmp_path, "cores_workers", "cores_workers-again").output
    assert "79.7 ?         82.8          92% ?            93%" in shown and "\n?: do not rely on it.\n" in shown
    (found,) = records(tmp_path, "cores_workers", "cores_workers-again")
    assert len(found["points"]) == 4 and len(found["only_first"]) == 4
    assert {point["verdict"] for point in found["points"]} == {"not resolvable", "do not rely on it"}
    assert all(point["ratio"]["low"] < 1 < point["ratio"]["high"] for point in found["points"])
    assert found["geometric_mean"]["low"] < 1 < found["geometric_mean"]["high"]


def test_nothing_in_common_is_said(tmp_path: Path) -> None:
    campaign(tmp_path, "old", {1: 0.2})
    campaign(tmp_path, "new", {2: 0.2})
    assert "no measured point in common" in str(call(tmp_path, "old", "new").exception)
    wrong = call(tmp_path, "old", "new", "--metric", "images_per_second").exception
    assert isinstance(wrong, UserError) and "images_per_s" in str(wrong)
    assert "higher or lower" in str(call(tmp_path, "old", "new", "--metric", "node").exception)


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    campaign(tmp_path / "then", "c", {1: 0.2, 2: 0.1})
    path = tmp_path / "reference.json"
    assert call(tmp_path / "then", "c", "--save-reference", str(path)).exit_code == 0
    return path


@pytest.mark.parametrize(
    ("now", "spread", "code", "verdicts"),
    [
        ({1: 0.2, 2: 0.1}, 0.01, 0, ["kept", "kept"]),
        ({1: 0.2, 2: 0.102}, 0.01, 0, ["kept", "kept"]),
        ({1: 0.2, 2: 0.125}, 0.01, 1, ["kept", "regressed"]),
        ({1: 0.2, 2: 0.125}, 0.3, 0, ["kept", "kept"]),
        ({1: 0.1, 2: 0.05}, 0.01, 0, ["kept", "kept"]),
        ({1: 0.2}, 0.01, 1, ["kept", "missing"]),
    ],
    ids=["same", "within tolerance", "slower", "too scattered to tell", "faster", "not measured"],
)
def test_the_exit_code_tells_a_regression(
    tmp_path: Path, reference: Path, now: dict[int, float], spread: float, code: int, verdicts: list[str]
) -> None:
    campaign(tmp_path / "now", "c", now, spread)
    done = call(tmp_path / "now", "c", "--reference", str(reference), "--json")
    assert [check["verdict"] for check in json.loads(done.output)] == verdicts
    assert done.exit_code == code


def scattered(root: Path, generator: np.random.Generator) -> None:
    made = FakeCampaign(root, "c", repeats=3)
    for cores in range(1, 15):
        for repeat in range(3):
            steps = [1.0] + [0.1 * math.exp(0.1 * generator.normal())] * 20
            made.add(Axes(workload="replay", cpu_cores=cores, steps_timed=20), FakeRun([steps]), repeat=repeat)
    made.save()


def test_one_of_many_points_that_looks_slower_by_luck_fails_no_build(tmp_path: Path) -> None:
    """Fourteen points whose runs scatter by 10 %, twice: nothing changed, and one verdict is due to chance."""
    generator = np.random.default_rng(5)
    scattered(tmp_path / "then", generator)
    scattered(tmp_path / "now", generator)
    path = tmp_path / "r.json"
    call(tmp_path / "then", "c", "--save-reference", str(path))
    done = call(tmp_path / "now", "c", "--reference", str(path), "--json")
    checks = json.loads(done.output)
    assert any(c["ratio"]["high"] < 1 and c["ratio"]["value"] < 0.9 for c in checks)
    assert {c["verdict"] for c in checks} == {"kept"} and done.exit_code == 0
    shutil.copytree(tmp_path / "then" / "c", tmp_path / "now" / "old")
    text = " ".join(call(tmp_path / "now", "old", "c", "--format", "markdown").output.split())
    assert "Of 14 points without a change, about 1 are called better or worse by chance." in text


def test_a_point_run_once_says_that_runs_may_differ(tmp_path: Path) -> None:
    for name in ("old", "new"):
        made = FakeCampaign(tmp_path, name, repeats=1)
        for cores in (1, 2):
            axes = Axes(workload="replay", cpu_cores=cores, steps_timed=20)
            made.add(axes, FakeRun([[1.0] + [0.1 / cores, 0.11 / cores] * 10]))
        made.save()
    text = call(tmp_path, "old", "new", "--format", "markdown").output
    assert "Run once on a side: 2 of 2" in text


def test_a_doubtful_point_is_not_kept(tmp_path: Path, reference: Path) -> None:
    made = FakeCampaign(tmp_path / "now", "c", repeats=1)
    for cores in (1, 2):
        steps = [1.0] + [0.1 * (1 + i / 10) / cores for i in range(20)]
        made.add(Axes(workload="replay", cpu_cores=cores, steps_timed=20), FakeRun([steps]))
    made.save()
    done = call(tmp_path / "now", "c", "--reference", str(reference))
    assert done.exit_code == 1
    assert done.output.count("doubtful") >= 2


def test_lower_is_better_where_the_column_says_so(tmp_path: Path) -> None:
    campaign(tmp_path / "then", "c", {1: 0.2})
    campaign(tmp_path / "now", "c", {1: 0.3})
    path = tmp_path / "r.json"
    call(tmp_path / "then", "c", "--save-reference", str(path), "--metric", "time_s")
    assert call(tmp_path / "now", "c", "--reference", str(path)).exit_code == 1
    assert call(tmp_path / "then", "c", "--reference", str(path)).exit_code == 0


def test_a_broken_reference_is_named(tmp_path: Path) -> None:
    campaign(tmp_path, "c", {1: 0.2})
    path = tmp_path / "r.json"
    path.write_text('{"schema_version": 2}')
    assert "r.json: no reference" in str(call(tmp_path, "c", "--reference", str(path)).exception)
    path.unlink()
    assert "--save-reference" in str(call(tmp_path, "c", "--reference", str(path)).exception)


def test_runs_under_other_conditions_enter_no_metric(tmp_path: Path) -> None:
    """Two warm runs and a cold one that takes four times as long: times are compared as rates are, of the warm ones."""
    for name in ("old", "new"):
        made = FakeCampaign(tmp_path, name, repeats=3)
        for repeat, state in enumerate(("warm", "warm", "cold" if name == "new" else "warm")):
            event = {"event": "cache", "t_s": 0, "wanted": state, "state": state}
            steps = [1.0] + [0.2 * (1 + 0.01 * repeat) * (4 if state == "cold" else 1)] * 20
            made.add(Axes(workload="replay", steps_timed=20), FakeRun([steps], events=[event]), repeat=repeat)
        made.save()
    for metric in ("images_per_s", "time_s"):
        (found,) = records(tmp_path, "old", "new", "--metric", metric)
        assert found["points"][0]["ratio"]["value"] == pytest.approx(1.0, abs=0.01), metric


def waiting(root: Path, name: str, waits_s: dict[int, float]) -> None:
    made = FakeCampaign(root, name, repeats=3)
    for cores, wait_s in waits_s.items():
        for repeat in range(3):
            waits = [0.0] + [wait_s * (1 + 0.05 * repeat)] * 20
            made.add(
                Axes(workload="replay", cpu_cores=cores, steps_timed=20),
                FakeRun([[1.0] + [0.2] * 20], waits=waits),
                repeat=repeat,
            )
    made.save()


def test_a_share_of_zero_is_a_value(tmp_path: Path) -> None:
    """It has no ratio, and is neither left out nor called missing: a build whose waiting ends is no worse."""
    waiting(tmp_path, "old", {1: 0.05, 2: 0.05})
    waiting(tmp_path, "new", {1: 0.0, 2: 0.05})
    (found,) = records(tmp_path, "old", "new", "--metric", "wait_share")
    assert [(p["second"]["value"], p["ratio"]["value"], p["verdict"]) for p in found["points"]] == [
        (0.0, None, "no ratio"),
        (pytest.approx(0.2625, abs=0.001), pytest.approx(1.0), "not resolvable"),
    ]
    assert found["only_first"] == found["only_second"] == found["without_value"] == []
    assert "No ratio where a side is 0: 1 point." in call(tmp_path, "old", "new", "--metric", "wait_share").output
    path = tmp_path / "r.json"
    call(tmp_path, "old", "--save-reference", str(path), "--metric", "wait_share")
    now = call(tmp_path, "new", "--reference", str(path), "--json")
    assert ([check["verdict"] for check in json.loads(now.output)], now.exit_code) == (["kept", "kept"], 0)
    call(tmp_path, "new", "--save-reference", str(path), "--metric", "wait_share")
    then = call(tmp_path, "old", "--reference", str(path), "--json")
    assert ([check["verdict"] for check in json.loads(then.output)], then.exit_code) == (["regressed", "kept"], 1)


def test_a_point_that_failed_on_one_side_is_not_only_on_the_other(tmp_path: Path) -> None:
    campaign(tmp_path, "old", {1: 0.2, 2: 0.1})
    made = campaign(tmp_path, "new", {1: 0.2})
    made.add(Axes(workload="replay", cpu_cores=2, steps_timed=20), FakeRun([[0.1] * 3], exit_code=3))
    made.save()
    (found,) = records(tmp_path, "old", "new")
    assert (found["only_first"], found["only_second"], len(found["without_value"])) == ([], [], 1)
    text = " ".join(call(tmp_path, "old", "new").output.split())
    assert "Tried on both sides, without a value on one: 1 point; `harness check` says why." in text
    campaign(tmp_path, "other", {2: 0.2})
    broken = FakeCampaign(tmp_path, "broken")
    broken.add(Axes(workload="replay", cpu_cores=2, steps_timed=20), FakeRun([[0.1] * 3], exit_code=3))
    broken.save()
    assert "none gave a value on both sides: see `harness check" in str(call(tmp_path, "other", "broken").exception)


def test_campaigns_of_one_name_are_told_apart_by_their_directories(tmp_path: Path) -> None:
    for folder, step_s in (("before", 0.2), ("after", 0.1)):
        campaign(tmp_path / folder, "c", {1: step_s, 2: step_s / 2})
    paths = [str(tmp_path / folder / "c") for folder in ("before", "after")]
    (found,) = json.loads(CliRunner().invoke(cli, ["compare", *paths, "--json"]).output)
    assert [found["first"], found["second"]] == paths


def test_the_ceiling_is_a_rate_to_rely_on(tmp_path: Path) -> None:
    """A run that became slower all the while was fast at first: no other point is measured against that."""
    for name in ("old", "new"):
        made = campaign(tmp_path, name, {1: 0.2, 2: 0.1}, spread=0.0)
        drifting = [0.001 * (1 + i) for i in range(21)]
        for repeat in range(3):
            made.add(
                Axes(workload="replay", cpu_cores=4, steps_timed=20), FakeRun([[1.0, *drifting[1:]]]), repeat=repeat
            )
        made.save()
    (found,) = records(tmp_path, "old", "new")
    assert [p["normalised"][0]["of_ceiling"] for p in found["points"][:2]] == pytest.approx([0.5, 1.0])


def test_a_reference_is_of_its_own_metric(tmp_path: Path, reference: Path) -> None:
    campaign(tmp_path, "c", {1: 0.2})
    other = call(tmp_path, "c", "--reference", str(reference), "--metric", "time_s").exception
    assert "holds images_per_s, not time_s" in str(other)
    both = call(tmp_path, "c", "--reference", str(reference), "--save-reference", str(reference)).exception
    assert "a call of its own" in str(both)


def test_json_says_what_an_interval_rests_on(tmp_path: Path) -> None:
    campaign(tmp_path, "old", {1: 0.2})
    made = FakeCampaign(tmp_path, "new", repeats=1)
    made.add(Axes(workload="replay", steps_timed=20), FakeRun([[1.0] + [0.19, 0.21] * 10]))
    made.save()
    (point,) = records(tmp_path, "old", "new")[0]["points"]
    assert [point[name]["interval"] for name in ("first", "second", "ratio")] == ["between", "within", "within"]
    path = tmp_path / "r.json"
    call(tmp_path, "new", "--save-reference", str(path))
    (check,) = json.loads(call(tmp_path, "old", "--reference", str(path), "--json").output)
    assert [check[name]["interval"] for name in ("then", "now")] == ["within", "between"]
