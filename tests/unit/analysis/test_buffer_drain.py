"""The published trap: a mean of step rates that begins with a buffer filled while the first step compiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis import findings
from harness.analysis.collect import collect
from harness.model.axes import Axes

BATCH = 256
CONSUME_S = BATCH / 1330  # what the GPU could take
PRODUCE_S = BATCH / 61  # what one loader thread can give


def measured(tmp_path: Path, fast_steps: int, timed: int, with_occupancy: bool) -> pd.Series:
    """Step 1 compiles for 17 s, ``fast_steps`` live on the buffer, the others wait for the loader."""
    durations = [17.0] + [CONSUME_S] * fast_steps + [PRODUCE_S] * (timed - fast_steps)
    occupancy = [0] + [max(fast_steps - i, 0) for i in range(timed)] if with_occupancy else None
    campaign = FakeCampaign(tmp_path, varied=())
    axes = Axes(workload="replay", framework="none", prefetch=8, parallel_threads=1, steps_timed=timed)
    campaign.add(axes, FakeRun([durations], images=BATCH, occupancy=occupancy))
    campaign.save()
    return collect(campaign.layout).iloc[0]


@pytest.mark.parametrize("with_occupancy", [True, False])
def test_ten_steps_report_the_steady_rate_not_the_inflated_mean(tmp_path: Path, with_occupancy: bool) -> None:
    row = measured(tmp_path, fast_steps=1, timed=10, with_occupancy=with_occupancy)
    assert row["mean_of_step_rates"] == pytest.approx(184, rel=0.03)
    assert row["all_images_per_s"] == pytest.approx(67, rel=0.03)
    assert row["images_per_s"] == pytest.approx(61, rel=1e-9)
    assert row["transient_images_per_s"] == pytest.approx(1330, rel=1e-9)


def test_a_full_buffer_of_eight_in_a_long_run(tmp_path: Path) -> None:
    row = measured(tmp_path, fast_steps=8, timed=100, with_occupancy=True)
    assert row["images_per_s"] == pytest.approx(61, rel=1e-9)
    assert row["all_images_per_s"] == pytest.approx(100 * BATCH / (8 * CONSUME_S + 92 * PRODUCE_S))
    assert row["mean_of_step_rates"] == pytest.approx(0.08 * 1330 + 0.92 * 61)
    assert row["drained_images"] == pytest.approx(8 * BATCH)
    assert bool(row["steady"])
    found = {finding.code: finding for finding in findings.parse(row["findings"])}
    assert found["buffer_drain"].evidence["drained_images"] == 8 * BATCH


def test_a_run_too_short_to_leave_the_drain_is_refused(tmp_path: Path) -> None:
    row = measured(tmp_path, fast_steps=8, timed=10, with_occupancy=True)
    assert not bool(row["steady"])
    assert "not_steady" in {finding.code for finding in findings.parse(row["findings"])}


def test_the_interval_holds_the_steady_rate_under_noise(tmp_path: Path) -> None:
    generator = np.random.default_rng(4)
    durations = [17.0] + [CONSUME_S] * 8 + list(PRODUCE_S * (1 + 0.05 * generator.normal(size=192)))
    campaign = FakeCampaign(tmp_path, varied=())
    axes = Axes(workload="replay", framework="none", prefetch=8, steps_timed=200)
    campaign.add(axes, FakeRun([durations], images=BATCH))
    campaign.save()
    row = collect(campaign.layout).iloc[0]
    assert row["images_per_s_low"] < 61 < row["images_per_s_high"]
    assert row["images_per_s_high"] / row["images_per_s_low"] < 1.05
