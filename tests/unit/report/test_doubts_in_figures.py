"""What is not to be relied on looks so in every figure, and numbers on colours can be read."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis.collect import collect
from harness.layout import CampaignLayout
from harness.model.axes import Axes
from harness.model.campaign import Campaign
from harness.report.html.charts import bars, curves
from harness.report.plots import along_axis, ceilings, heat, rate_against_axis, style, time_shares


@pytest.fixture
def drifting(tmp_path: Path) -> tuple[CampaignLayout, object, Campaign]:
    """1 and 2 cores; training waits half of its time; with 2 the step time grows without end."""
    campaign = FakeCampaign(tmp_path, "c", varied=("cpu_cores", "workers"), repeats=2)
    for cores in (1, 2):
        for workers in (1, 2):
            steps = [0.2] * 30 if cores == 1 else list(np.linspace(0.1, 0.4, 30))
            point = Axes(workload="replay", cpu_cores=cores, workers=workers, steps_timed=30)
            for repeat in range(2):
                run = FakeRun([[1.0, *(s * (1 + 0.01 * repeat) for s in steps)]], waits=[0.0, *(s / 2 for s in steps)])
                campaign.add(point, run, repeat=repeat)
    saved = campaign.save()
    return campaign.layout, collect(campaign.layout), saved


def test_ceilings_mark_the_points_not_to_rely_on(drifting: tuple) -> None:
    layout, table, saved = drifting
    _, panels = ceilings.data(table, saved)
    assert [panel.doubtful for panel in panels] == [(False, True), (False, True)]
    with style.applied():
        figure = ceilings.figure(table, saved)
    markers = [line for line in figure.axes[0].lines if line.get_marker() not in ("None", "", None)]
    hollow = [tuple(line.get_xdata()) for line in markers if line.get_markerfacecolor() == "white"]
    assert hollow == [(2.0,)]
    assert "hollow: do not rely on it" in figure.get_suptitle().replace("\n", " ")
    charts = curves.under_ceilings(layout, table, saved)
    measured = next(trace for trace in charts[0]["traces"] if trace["name"] == "measured")
    assert measured["marker"]["symbol"] == ["circle", "circle-open"]


def test_bars_of_step_times_are_pale_where_not_to_rely_on(drifting: tuple) -> None:
    layout, table, saved = drifting
    assert [bar.doubtful for bar in time_shares.data(table, saved)] == [False, True, False, True]
    with style.applied():
        figure = time_shares.figure(table, saved)
    assert [patch.get_alpha() for patch in figure.axes[0].containers[0]] == [None, style.PALE, None, style.PALE]
    assert "pale: do not rely on it" in figure.get_suptitle()
    (chart,) = bars.shares(layout, table, saved)
    assert chart["traces"][0]["marker"]["opacity"] == [style.PALE, 1.0, style.PALE, 1.0]


def test_interval_bars_of_the_report_do_not_lie_on_each_other(drifting: tuple) -> None:
    layout, table, saved = drifting
    (chart,) = curves.rate(layout, table, saved)
    places = [trace["x"] for trace in chart["traces"]]
    assert len({x for xs in places for x in xs}) == 4
    assert chart["layout"]["xaxis"]["tickvals"] == [1.0, 2.0]
    found = rate_against_axis.data(table, saved)
    assert places == [along_axis.shifted(number, found.panels[0]) for number in (0, 1)]


@pytest.mark.parametrize("share", np.linspace(0, 1, 41))
def test_numbers_on_a_heat_map_stand_out(share: float) -> None:
    colour = np.array(matplotlib.colormaps["viridis"](float(share))[:3])
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    light = float(linear @ [0.2126, 0.7152, 0.0722])
    ink = {"black": 0.0, "white": 1.0}[heat.ink(float(share))]
    assert (max(light, ink) + 0.05) / (min(light, ink) + 0.05) >= 4.5


@pytest.mark.parametrize(("slower", "scale"), [(1000, "log"), (10, "linear")])
def test_rates_a_thousandfold_apart_do_not_lie_on_zero(tmp_path: Path, slower: int, scale: str) -> None:
    campaign = FakeCampaign(tmp_path, "c", varied=("cpu_cores", "pipeline"), repeats=1)
    for pipeline, factor in (("fast", 1), ("slow", slower)):
        for cores in (1, 2):
            axes = Axes(workload="replay", pipeline=pipeline, cpu_cores=cores, steps_timed=20)
            campaign.add(axes, FakeRun([[1.0] + [0.001 * factor / cores] * 20]))
    saved = campaign.save()
    table = collect(campaign.layout)
    with style.applied():
        figure = rate_against_axis.figure(table, saved)
    assert figure.axes[0].get_yscale() == scale
    low, _ = figure.axes[0].get_ylim()
    assert low < min(min(line.get_ydata()) for line in figure.axes[0].lines)
    assert ("logarithmic" in figure.get_suptitle()) is (scale == "log")
    (chart,) = curves.rate(campaign.layout, table, saved)
    assert chart["layout"]["yaxis"].get("type", "linear") == scale
    assert ("logarithmic" in chart["note"]) is (scale == "log")
