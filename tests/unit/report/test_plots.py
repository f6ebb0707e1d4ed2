"""Figures: their data are exact, they draw whatever is awkward, and they say what is missing."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis.collect import collect
from harness.model.axes import Axes
from harness.report import plots
from harness.report.html.charts.bars import shares
from harness.report.html.charts.curves import speedup, under_ceilings
from harness.report.plots import (
    ceilings,
    rate_against_axis,
    speedup_against_axis,
    step_times,
    style,
    time_against_axis,
    time_shares,
)
from harness.report.plots.along_axis import Curves


def cores(
    root: Path, values: tuple[int, ...] = (1, 2), repeats: int = 2, name: str = "c", **more: object
) -> FakeCampaign:
    campaign = FakeCampaign(root, name, repeats=repeats)
    for value in values:
        for repeat in range(repeats):
            point = Axes(workload="replay", cpu_cores=value, steps_timed=20)
            durations = [1.0] + [0.2 / value * (1 + 0.01 * repeat)] * 20
            campaign.add(point, FakeRun([durations], **more), repeat=repeat)  # type: ignore[arg-type]
    return campaign


def test_curves_hold_values_and_intervals(tmp_path: Path) -> None:
    campaign = cores(tmp_path)
    saved = campaign.save()
    table = collect(campaign.layout)
    rates = rate_against_axis.data(table, saved)
    assert isinstance(rates, Curves)
    (panel,) = rates.panels
    (line,) = panel.lines
    assert (rates.axis, panel.title, line.label, line.x) == ("cpu_cores", "replay", "", (1, 2))
    assert line.y == pytest.approx((160 / math.sqrt(1.01), 320 / math.sqrt(1.01)))
    assert all(low < y < high for low, y, high in zip(line.low, line.y, line.high, strict=True))
    times = time_against_axis.data(table, saved)
    assert isinstance(times, Curves)
    assert times.panels[0].lines[0].y == pytest.approx((4 * math.sqrt(1.01), 2 * math.sqrt(1.01)))
    assert times.panels[0].steps_timed == (20,)
    speedups = speedup_against_axis.data(table, saved)
    assert isinstance(speedups, Curves)
    assert speedups.panels[0].lines[0].y == pytest.approx((1, 2))


def test_shares_add_up_to_the_step(tmp_path: Path) -> None:
    campaign = cores(tmp_path, (1,), 1, waits=[0.0] + [0.05] * 20)
    saved = campaign.save()
    (bar,) = time_shares.data(collect(campaign.layout), saved)
    assert bar.milliseconds == pytest.approx(
        {"compute": 150, "exchange": 0, "copy": 0, "wait": 50, "other": 0}, abs=1e-6
    )


def test_step_traces(tmp_path: Path) -> None:
    campaign = cores(tmp_path, (1,), 1, occupancy=[8] * 21)
    saved = campaign.save()
    table = collect(campaign.layout)
    import pandas as pd

    (trace,) = step_times.data(pd.read_parquet(campaign.layout.steps_parquet), table, saved)
    assert trace.step_s.tolist() == pytest.approx([1.0] + [0.2] * 20)
    assert trace.occupancy.tolist() == [8.0] * 21
    assert trace.steady_from == 1


ALONG_CORES = ("training-time", "images-per-second", "speed-up")


def test_every_figure_is_drawn_and_reproducible(tmp_path: Path) -> None:
    campaign = cores(tmp_path)
    saved = campaign.save()
    table = collect(campaign.layout)
    drawn = plots.draw_all(campaign.layout, table, saved)
    names = {*ALONG_CORES, "where-time-goes", "step-time", "ceilings"}
    assert {path.name for path in drawn.files} == {f"{name}.{form}" for name in names for form in ("png", "svg")}
    assert {name for name, _ in drawn.skipped} == set(plots.MAKERS) - names
    before = {path: path.read_bytes() for path in drawn.files}
    again = plots.draw_all(campaign.layout, table, saved)
    assert all(path.read_bytes() == before[path] for path in again.files)


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    campaign = cores(tmp_path, (1,), 1)
    saved = campaign.save()
    drawn = plots.draw_all(campaign.layout, collect(campaign.layout), saved, ("png",), ALONG_CORES)
    assert dict(drawn.skipped) == dict.fromkeys(ALONG_CORES, "no numeric axis was varied")


def test_nothing_measured_draws_nothing(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "c")
    campaign.plan(Axes(workload="replay"))
    saved = campaign.save()
    drawn = plots.draw_all(campaign.layout, collect(campaign.layout), saved)
    assert not drawn.files
    assert len(drawn.skipped) == len(plots.MAKERS)


AWKWARD = "a name with $math$ _under_ <b>&amp; [bold] \\frac{1}{2} % 測定 and much more than fits into any legend"


@pytest.mark.filterwarnings("error")
def test_awkward_names_missing_cells_and_many_series(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "c", varied=("cpu_cores", "storage", "encoding"), repeats=1)
    for number in range(15):
        for value in (1, 2, 4, 8, 40):
            if (number + value) % 3:
                point = Axes(
                    workload="replay",
                    cpu_cores=value,
                    storage=f"{AWKWARD} {number}",
                    encoding=f"e{number % 2}",
                    steps_timed=8,
                )
                campaign.add(point, FakeRun([[0.1 / value] * 9], exit_code=number % 5 and 0))
    saved = campaign.save()
    drawn = plots.draw_all(campaign.layout, collect(campaign.layout), saved, formats=("png", "svg", "pdf"))
    names = {*ALONG_CORES, "where-time-goes", "step-time", "ceilings", "encoding", "storage-staging"}
    assert {path.name for path in drawn.files} == {f"{name}.{form}" for name in names for form in plots.FORMATS}
    assert all(path.stat().st_size > 2000 for path in drawn.files)


def test_an_unwritable_directory_is_one_clear_message(tmp_path: Path) -> None:
    from harness.errors import UserError

    campaign = cores(tmp_path)
    saved = campaign.save()
    table = collect(campaign.layout)
    campaign.layout.plots.write_text("a file where the directory should be")
    with pytest.raises(UserError, match="plots"):
        plots.draw_all(campaign.layout, table, saved)


@pytest.mark.parametrize(("axis", "ideal"), [("cpu_cores", True), ("workers", False)])
def test_the_ideal_is_drawn_along_what_computes_and_the_measured_line_is_named(
    tmp_path: Path, axis: str, ideal: bool
) -> None:
    """Nobody expects two loader workers to train twice as fast as one."""
    campaign = FakeCampaign(tmp_path, varied=(axis,), repeats=1)
    for count in (1, 2):
        point = Axes.model_validate({"workload": "replay", axis: count, "steps_timed": 20})
        campaign.add(point, FakeRun([[1.0] + [0.1 / count] * 20]))
    saved = campaign.save()
    table = collect(campaign.layout)
    figure = speedup_against_axis.figure(campaign.layout, table, saved)
    (legend,) = figure.legends
    named = [told.get_text() for told in legend.get_texts()]
    assert named == (["ideal", "measured"] if ideal else ["measured"])
    (chart,) = speedup(campaign.layout, table, saved)
    assert [trace["name"] for trace in chart["traces"]] == named


def test_figures_without_intervals_say_so_where_they_are_known(tmp_path: Path) -> None:
    campaign = cores(tmp_path, (1, 2), 3, waits=[0.0] + [0.05] * 20)
    saved = campaign.save()
    table, told = collect(campaign.layout), "95 % intervals not drawn"
    for one in (ceilings, time_shares):
        assert told in one.figure(table, saved).get_suptitle().replace("\n", " ")
    for charts in (shares, under_ceilings):
        assert all(told in chart["note"] for chart in charts(campaign.layout, table, saved))
    assert style.undrawn(known=False) == ""
