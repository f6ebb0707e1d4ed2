"""Loss against images/s: by the test samples where runs were judged by them."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis.collect import collect
from harness.model.axes import Axes
from harness.report.html.charts import bars
from harness.report.plots import loss_rate


@pytest.mark.parametrize(("judged", "losses"), [(True, [1.0, 2.0]), (False, [0.25, 0.5])])
def test_the_last_windows_loss_over_test_samples_comes_first(tmp_path: Path, judged: bool, losses: list[float]) -> None:
    campaign = FakeCampaign(tmp_path, varied=("batch_interval",))
    for interval in (1, 2):
        told = [{"event": "loss", "t_s": 1.0, "step": 20, "value": 0.25 * interval}]
        if judged:
            for step, loss in ((10, 9.0), (20, 1.0 * interval)):
                told.append({"event": "validation", "t_s": 9.0, "step": step, "loss": loss, "error": 0.5, "samples": 8})
        axes = Axes(workload="lenet_mnist", framework="torch", batch_interval=interval, steps_timed=20)
        campaign.add(axes, FakeRun([[1.0] + [0.1] * 20], events=told))
    saved = campaign.save()
    table = collect(campaign.layout)
    (chart,) = bars.losses(campaign.layout, table, saved)
    title = chart["layout"]["yaxis"]["title"]["text"]
    assert title == ("validation loss after the last window" if judged else "last training loss")
    outcomes = loss_rate.data(table)
    assert not isinstance(outcomes, str)
    assert [outcome.loss for outcome in outcomes] == losses
    assert {outcome.validated for outcome in outcomes} == {judged}
    assert table["validation_error"].dropna().tolist() == [0.5, 0.5] * judged
