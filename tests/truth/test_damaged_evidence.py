"""Event files cut off or damaged at every byte: the run failed, or its number is the true one; never a wrong one."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis import row
from harness.analysis.campaigns import attempts, state_of
from harness.analysis.evidence import read_run
from harness.layout import AttemptLayout
from harness.model.axes import Axes
from harness.model.job import JobState

TRUTH = 2 * 32 / 0.2
DURATIONS = [1.0] + [0.2] * 14
AXES = Axes(workload="replay", framework="none", cpu_cores=2, ranks_per_node=2, steps_timed=14)


@pytest.fixture
def campaign(tmp_path: Path) -> FakeCampaign:
    campaign = FakeCampaign(tmp_path)
    campaign.add(AXES, FakeRun([DURATIONS, DURATIONS]))
    campaign.save()
    return campaign


def outcome(campaign: FakeCampaign) -> tuple[JobState, float, set[str]]:
    """State, rate (NaN: none) and codes of what was found."""
    [attempt] = attempts(campaign.layout)
    run = read_run(attempt.layout)
    state, _ = state_of(attempt, run.spec)
    cells, found, _ = row.run_cells(run, state)
    return state, cells.get("images_per_s", math.nan), {finding.code for finding in found}


def layout_of(campaign: FakeCampaign) -> AttemptLayout:
    [attempt] = attempts(campaign.layout)
    return attempt.layout


def test_whole_evidence_gives_the_truth(campaign: FakeCampaign) -> None:
    state, rate, found = outcome(campaign)
    assert (state, rate) == (JobState.SUCCEEDED, pytest.approx(TRUTH, rel=1e-12))
    assert not found & {"events_torn", "rank_missing", "run_incomplete"}


def test_cut_off_at_every_byte(campaign: FakeCampaign) -> None:
    path = layout_of(campaign).events(1)
    whole = path.read_bytes()
    for cut in range(len(whole) - 1):
        path.write_bytes(whole[:cut])
        state, rate, found = outcome(campaign)
        assert state is JobState.FAILED, cut
        assert "run_incomplete" in found, cut
        assert math.isnan(rate) or rate == pytest.approx(TRUTH, rel=1e-9), cut


def test_every_byte_damaged_once(campaign: FakeCampaign) -> None:
    """Each byte becomes another: a digit another digit, so that the line stays good JSON."""
    path = layout_of(campaign).events(0)
    whole = path.read_bytes()
    for place, byte in enumerate(whole):
        other = ord("7") if byte != ord("7") and chr(byte).isdigit() else byte ^ 1
        path.write_bytes(whole[:place] + bytes([other]) + whole[place + 1 :])
        state, rate, found = outcome(campaign)
        if b"crc" not in whole[place - 2 : place + 3]:  # the seal's own name: the line is then as one without a seal
            assert "events_torn" in found, (place, chr(byte))
        assert math.isnan(rate) or rate == pytest.approx(TRUTH, rel=1e-9), (place, chr(byte), rate)


def test_a_missing_rank_gives_no_number(campaign: FakeCampaign) -> None:
    layout_of(campaign).events(1).unlink()
    state, rate, found = outcome(campaign)
    assert state is JobState.FAILED
    assert math.isnan(rate)
    assert {"rank_missing", "run_incomplete"} <= found
