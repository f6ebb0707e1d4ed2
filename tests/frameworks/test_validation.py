"""The loss over the test samples after each window of steps: outside of timed steps, of the model as it then was."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime_support import events, of_kind, run_point, spec_of, step_column, write_point

from harness.cli.data import request_of
from harness.datasets.make import make
from harness.workloads.validation import Kept, judge

pytest.importorskip("tensorflow")
pytest.importorskip("torch")

pytestmark = pytest.mark.framework
TEST_SAMPLES = 60


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "digits-mnist"
    make(path, request_of("mnist", "digits", 0, 200, TEST_SAMPLES, None, None), workers=1)
    return path


def ran(directory: Path, digits: Path, framework: str, window: int) -> list[dict[str, Any]]:
    axes = {"workload": "lenet_mnist", "framework": framework, "dataset": "digits:mnist", "batch_size": 20}
    options = {"validation_window": window} if window else {}
    spec = spec_of(str(digits), steps_warmup=2, steps_timed=10, options=options, **axes)
    done = run_point(write_point(directory, spec))
    assert done.returncode == 0, done.stderr
    return events(directory)


@pytest.mark.parametrize("framework", ["tensorflow", "torch"])
def test_each_window_has_its_loss_and_training_goes_on_as_without(tmp_path: Path, digits: Path, framework: str) -> None:
    records = ran(tmp_path / "with", digits, framework, 4)
    told = of_kind(records, "validation")
    assert [event["step"] for event in told] == [4, 8, 12]
    assert {event["samples"] for event in told} == {TEST_SAMPLES}
    assert all(0 < event["loss"] < 2 * math.log(10) and 0 <= event["error"] <= 1 for event in told)
    assert len({event["loss"] for event in told}) == 3, "each of another state of the model"
    assert told[-1]["loss"] < told[0]["loss"], "it learns"
    last_step_s = of_kind(records, "steps")[-1]["t_s"]
    assert all(event["t_s"] > last_step_s for event in told), "nothing is evaluated while steps are timed"
    # copies of the parameters are made while the steps' clock stands still: each step begins where the last one ended
    begin, end = step_column(records, "begin_s"), step_column(records, "end_s")
    assert all(later >= earlier for earlier, later in zip(end, begin[1:], strict=False))
    plain = ran(tmp_path / "without", digits, framework, 0)
    assert not of_kind(plain, "validation")
    assert of_kind(plain, "loss")[-1]["value"] == pytest.approx(of_kind(records, "loss")[-1]["value"], rel=1e-4)


def test_loss_and_error_of_known_answers() -> None:
    """Logits (0, ln 3) give the second class 3/4: losses -ln(3/4) where it is right, -ln(1/4) where it is not."""
    kept = Kept(np.zeros((4, 1, 1, 1), np.float32), np.array([1, 1, 1, 0]))
    found = judge(lambda images: np.tile([0.0, math.log(3)], (len(images), 1)), kept)
    assert found.loss == pytest.approx((3 * -math.log(0.75) - math.log(0.25)) / 4)
    assert (found.error, found.samples) == (0.25, 4)
