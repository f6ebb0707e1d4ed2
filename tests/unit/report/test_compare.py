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
