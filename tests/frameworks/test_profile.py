"""A profiler's trace of steps after the timed ones, and none of them among those."""

from __future__ import annotations

from pathlib import Path

import pytest
from runtime_support import events, of_kind, run_point, spec_of, step_column, write_point

pytestmark = pytest.mark.framework


@pytest.mark.parametrize(("framework", "pattern"), [("torch", "torch.json"), ("tensorflow", "**/*.xplane.pb")])
def test_a_trace_is_written_after_the_window(tmp_path: Path, framework: str, pattern: str) -> None:
    pytest.importorskip(framework)
    axes = {"workload": "lenet_mnist", "dataset": "synthetic:mnist", "pipeline": "synthetic", "batch_size": 4}
    spec = spec_of(str(tmp_path), framework=framework, steps_warmup=1, steps_timed=3, profile=True, **axes)
    done = run_point(write_point(tmp_path / "run", spec))
    assert done.returncode == 0, done.stderr
    [trace] = (tmp_path / "run" / "profile").glob(pattern)
    assert trace.stat().st_size > 1000
    records = events(tmp_path / "run")
    assert step_column(records, "step") == [0, 1, 2, 3]
    [span] = [record for record in of_kind(records, "phase") if record["name"] == "profile"]
    assert span["begin_s"] >= step_column(records, "end_s")[-1]
    assert records[-1]["steps"] == 4
