"""What benchmarks compute and write: ratios of pairs against known values, and the table of docs/performance.md."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
MACHINE = {
    "cpu": "A | B",
    "cores": 2,
    "memory_gib": 16,
    "load_1min": 0.1,
    "kernel": "6.1",
    "python": "3.11.7",
    "utc": "2026-01-02T03:04Z",
}


@pytest.fixture
def common(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import common

    return common


@pytest.fixture
def runner(common: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.delitem(sys.modules, "run", raising=False)
    import run

    return run


def test_a_ratio_of_pairs_is_their_geometric_mean_with_students_interval(common: ModuleType) -> None:
    ratio = common.paired_ratio([2.0, 8.0, 4.0], [1.0, 1.0, 1.0])
    # logarithms to base 2: 1, 3, 2; standard error 1 / sqrt(3); t(0.975, 2) = 4.30265
    half = 4.302652729911275 / math.sqrt(3)
    assert ratio.value == pytest.approx(4.0)
    assert (ratio.low, ratio.high) == (pytest.approx(2 ** (2 - half)), pytest.approx(2 ** (2 + half)))
    assert ratio.n == 3


def test_one_pair_has_no_interval_and_none_is_an_error(common: ModuleType) -> None:
    ratio = common.paired_ratio([3.0], [2.0])
    assert ratio.value == pytest.approx(1.5)
    assert math.isnan(ratio.low)
    assert math.isnan(ratio.high)
    with pytest.raises(ValueError, match="no pairs"):
        common.paired_ratio([], [])
    with pytest.raises(ValueError, match="zip"):
        common.paired_ratio([1.0], [])


def test_ratios_near_one_are_told_to_the_thousandth(common: ModuleType) -> None:
    assert str(common.Ratio(1.0044, 0.9996, 1.1004, 48)) == "1.004 [1.000, 1.1]"
    assert str(common.Ratio(0.8996, 0.05, 1234.5, 3)) == "0.9 [0.05, 1,234]"
    assert str(common.paired_ratio([3.0], [2.0])) == "1.5, one pair"


def test_an_aim_is_decided_by_the_whole_interval(common: ModuleType) -> None:
    ratio = common.Ratio(1.5, 1.25, 1.75, 3)
    assert [ratio.at_most(bound) for bound in (1.2, 1.25, 1.6, 1.75, 2)] == [False, None, None, True, True]
    assert [ratio.at_least(bound) for bound in (1.2, 1.25, 1.6, 1.75, 2)] == [True, True, None, None, False]
    alone = common.paired_ratio([3.0], [2.0])
    assert alone.at_most(1) is alone.at_least(2) is alone.at_most(9) is None


def record(common: ModuleType, path: Path, **more: object) -> None:
    fields = {"ratio": common.Ratio(61.2345, 50.1, 75.0, 3), "aim": "≥ 50", "met": True} | more
    row = common.Row("Plan", 0.12345, "ms", "JUBE 2.5", 1234.5, "theirs / ours", note="a | b", **fields)
    options = common.arguments("").parse_args(["--json", str(path)])
    common.finish([row], options)
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"machine": MACHINE}))


def test_rows_become_lines_of_the_table(common: ModuleType, runner: ModuleType, tmp_path: Path) -> None:
    record(common, tmp_path / "plan.json")
    record(common, tmp_path / "scale.json", ratio=common.paired_ratio([3.0], [2.0]), met=False)
    (tmp_path / "broken.json").write_text(json.dumps({"machine": MACHINE, "failed": "exit code 3", "rows": []}))
    lines = runner.table(runner.read_records(tmp_path)).splitlines()
    assert lines[0].startswith("- A | B, 2 cores, 16 GiB, Linux 6.1, Python 3.11.7: broken (2026-01-02, load 0.1")
    assert "| broken | | | | | failed: exit code 3 | `make bench ONLY=broken` |" in lines
    ratio = "61.2 [50.1, 75] (theirs / ours)"
    plan = rf"| Plan (a \| b) | 0.123 ms | JUBE 2.5: 1,234 ms | {ratio} | ≥ 50 | yes | `make bench ONLY=plan` |"
    assert plan in lines
    assert any("| 1.5, one pair (theirs / ours) | ≥ 50 | **no** |" in line for line in lines)


@pytest.fixture
def page(runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "performance.md"
    path.write_text(f"before\n{runner.BEGIN}\nold\n{runner.END}\nafter\n")
    monkeypatch.setattr(runner, "PAGE", path)
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    return path


def test_the_page_keeps_all_but_the_table(common: ModuleType, runner: ModuleType, tmp_path: Path, page: Path) -> None:
    record(common, tmp_path / "plan.json")
    runner.write_page(tmp_path)
    runner.write_page(tmp_path)
    text = page.read_text()
    assert text.startswith(f"before\n{runner.BEGIN}\n- A")
    assert text.endswith(f"{runner.END}\nafter\n")
    assert "old" not in text
    assert text.count("| Plan ") == 1


def test_other_machines_follow_with_their_rows_that_have_an_aim(
    common: ModuleType, runner: ModuleType, tmp_path: Path, page: Path
) -> None:
    (tmp_path / "amd").mkdir()
    record(common, tmp_path / "plan.json", aim="", met=None)
    record(common, tmp_path / "amd" / "plan.json", met=None)
    record(common, tmp_path / "amd" / "scale.json", aim="", met=None)
    runner.write_page(tmp_path)
    first, second = page.read_text().split("Rows with an aim on another machine, from `results/benchmarks/amd`:\n\n")
    assert "(theirs / ours) |  |  | `make bench ONLY=plan` |" in first
    assert "(theirs / ours) | ≥ 50 | not decided | `make bench ONLY=plan` |" in second
    assert second.startswith("- A | B, 2 cores") and "ONLY=scale" not in second


def test_a_benchmark_that_fails_leaves_a_record_that_says_so(
    runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bench_bad.py").write_text("import sys; sys.exit(3)\n")
    monkeypatch.setattr(runner, "HERE", tmp_path)
    assert runner.run("bad", tmp_path, quick=True) is False
    assert json.loads((tmp_path / "bad.json").read_text())["failed"] == "exit code 3"


def test_the_shipped_page_has_the_marks_and_unknown_names_are_refused(runner: ModuleType) -> None:
    text = (ROOT / "docs" / "performance.md").read_text()
    assert text.index(runner.BEGIN) < text.index(runner.END)
    assert runner.chosen("") == runner.available()
    assert {"plan", "startup", "submission", "scale"} <= set(runner.available())
    with pytest.raises(SystemExit, match="no benchmark pan"):
        runner.chosen("pan")
