"""The MLPerf lines of a run, read by MLPerf's own compliance checker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from evidence_support import FakeCampaign, FakeRun

from harness.cli.main import cli
from harness.model.axes import Axes

compliance = pytest.importorskip("mlperf_logging.compliance_checker.mlp_compliance", reason="mlperf-logging is missing")
#: The newest rules that know ResNet-50 by the keys that all rounds have.
RULES = "3.1.0"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of one run of ResNet-50, written by ``harness table -o FOLDER``."""
    campaign = FakeCampaign(tmp_path / "results", "mlperf", varied=("cpu_cores",), repeats=2)
    options = {"optimizer": "sgd", "learning_rate": 0.1}
    axes = Axes(workload="resnet_imagenet", framework="torch", model="resnet50", batch_size=32, seed=5, options=options)
    for repeat in range(2):
        campaign.add(axes, FakeRun([[0.1 + 0.001 * (step % 3) for step in range(30)]]), repeat)
    campaign.save()
    folder = tmp_path / "logs"
    folder.mkdir()
    words = ["table", "mlperf", "--results", str(tmp_path / "results"), "--format", "mllog", "-o", str(folder)]
    assert CliRunner().invoke(cli, words, standalone_mode=False).exception is None
    logs = sorted(folder.iterdir())
    assert [path.name[-8:] for path in logs] == ["r0a1.log", "r1a1.log"]
    return logs[1]


def complaints(path: Path) -> list[str]:
    """What the checker finds wrong; an empty list: it calls the log compliant."""
    checker = compliance.make_checker("training", RULES, quiet=False, werror=True)
    valid = checker.check_file(str(path), f"training_{RULES}/common.yaml")
    told = [*checker.warnings.values(), *checker.overwritable.values(), *checker.not_overwritable]
    assert bool(told) is not valid
    return [" ".join(str(text).split()) for text in told]


def test_the_checker_misses_only_the_accuracy_that_no_run_evaluates(log: Path) -> None:
    assert complaints(log) == ["Required AT_LEAST_ONE occurrence of 'eval_accuracy' but found 0"]


def test_with_an_accuracy_the_log_is_compliant_and_without_another_line_it_is_not(log: Path) -> None:
    lines = log.read_text().splitlines()
    accuracy = json.loads(lines[-1].removeprefix(":::MLLOG "))
    accuracy |= {"event_type": "POINT_IN_TIME", "key": "eval_accuracy", "value": 0.1, "metadata": {"epoch_num": 1}}
    lines.insert(-1, f":::MLLOG {json.dumps(accuracy)}")
    log.write_text("\n".join(lines) + "\n")
    assert complaints(log) == []
    for key in ("init_start", "train_samples", "block_stop", "submission_platform"):
        log.write_text("".join(f"{line}\n" for line in lines if f'"{key}"' not in line))
        assert any(key in text for text in complaints(log)), key


def test_what_is_known_of_the_run_is_in_its_log(log: Path) -> None:
    records = [json.loads(line.removeprefix(":::MLLOG ")) for line in log.read_text().splitlines()]
    values = {record["key"]: record["value"] for record in records}
    assert (values["seed"], values["global_batch_size"], values["train_samples"]) == (6, 32, 60000)
    assert (values["opt_name"], values["opt_base_learning_rate"]) == ("sgd", 0.1)
    assert values["cache_clear"] is False
    assert [r["key"] for r in records if r["key"].endswith(("_start", "_stop"))] == [
        "init_start",
        "init_stop",
        "run_start",
        "block_start",
        "block_stop",
        "run_stop",
    ]
    times = [record["time_ms"] for record in records]
    assert times == sorted(times) and times[0] == 1000000 and times[-1] == 1060000
