"""The list of findings: what made a run fail is not buried under findings on the number that it does not have."""

from __future__ import annotations

from pathlib import Path

from evidence_support import FakeCampaign, FakeRun

from harness.analysis.collect import collect
from harness.model.axes import Axes
from harness.report.findings_list import list_findings


def test_a_failed_run_is_not_told_to_time_more_steps(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "c", repeats=1)
    campaign.add(Axes(workload="replay", cpu_cores=1, steps_timed=20), FakeRun([[0.2] * 3], exit_code=1))
    saved = campaign.save()
    listed = list_findings(collect(campaign.layout), saved, ("error", "warning"))
    assert [group.code for group in listed] == ["run_incomplete"]


def test_a_run_that_gave_a_number_keeps_its_findings(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "c", repeats=1)
    growing = [0.1 * (1 + step / 5) for step in range(20)]
    campaign.add(Axes(workload="replay", cpu_cores=1, steps_timed=20), FakeRun([[1.0, *growing]]))
    saved = campaign.save()
    listed = list_findings(collect(campaign.layout), saved, ("error", "warning"))
    assert "not_steady" in [group.code for group in listed]
