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
from harness.report.plots import (
    MAKERS,
    along_axis,
    ceilings,
    heat,
    rate_against_axis,
    scaling_ranks,
    speedup_against_axis,
    storage_staging,
    style,
    time_shares,
)


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
    assert chart["traces"][0]["marker"]["pattern"]["shape"] == ["/", "", "/", ""]
    assert "hatched: do not rely on it" in chart["note"]


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


def growing_slower() -> FakeRun:
    return FakeRun([[0.01 * (1 + step / 4) for step in range(31)]])


def test_what_is_measured_against_a_doubtful_point_is_doubtful(tmp_path: Path) -> None:
    """The first point is not steady: no speed-up against it can be relied on, in either figure."""
    campaign = FakeCampaign(tmp_path, "c", varied=("ranks_per_node",), repeats=2)
    for repeat in range(2):
        campaign.add(Axes(workload="replay", cpu_cores=4, steps_timed=30), growing_slower(), repeat=repeat)
        for ranks in (2, 4):
            axes = Axes(workload="replay", cpu_cores=4, ranks_per_node=ranks, steps_timed=30)
            campaign.add(axes, FakeRun([[1.0] + [0.2] * 30] * ranks), repeat=repeat)
    saved, table = campaign.save(), collect(campaign.layout)
    (line,) = speedup_against_axis.data(table, saved).panels[0].lines
    assert line.doubtful == (True, True, True)
    (series,) = scaling_ranks.data(campaign.layout, table, saved)
    assert series.doubtful == (True, True, True)
    with style.applied():
        figure = scaling_ranks.figure(campaign.layout, table, saved)
    assert "hollow: do not rely on it" in figure.get_suptitle().replace("\n", " ")
    left = figure.axes[0].lines
    assert [one.get_markerfacecolor() for one in left].count("white") == 3
    assert curves.scaling(campaign.layout, table, saved)[0]["traces"][-1]["marker"]["symbol"] == ["circle-open"] * 3


def test_a_point_to_rely_on_stands_for_its_ranks(tmp_path: Path) -> None:
    """Two points of two ranks: the faster one became slower all the while."""
    campaign = FakeCampaign(tmp_path, "c", varied=("ranks_per_node", "cpu_cores"), repeats=1)
    for ranks, cores, run in ((1, 2, None), (2, 2, None), (2, 4, growing_slower())):
        axes = Axes(workload="replay", cpu_cores=cores, ranks_per_node=ranks, steps_timed=30)
        steady = FakeRun([[1.0] + [0.2] * 30] * ranks)
        campaign.add(axes, steady if run is None else FakeRun(run.durations * ranks))
    saved, table = campaign.save(), collect(campaign.layout)
    (series,) = scaling_ranks.data(campaign.layout, table, saved)
    assert (series.ranks, series.doubtful) == ((1, 2), (False, False))
    assert series.speedup == pytest.approx((1.0, 2.0))


def test_each_beginning_has_its_own_ideal(tmp_path: Path) -> None:
    """One series lacks its first point: its speed-up of 1 stands at 2 cores, where the other's ideal is 2."""
    campaign = FakeCampaign(tmp_path, "c", varied=("pipeline", "cpu_cores"), repeats=1)
    for pipeline, first in (("whole", 1), ("late", 2)):
        for cores in (1, 2, 4):
            if cores >= first:
                axes = Axes(workload="replay", pipeline=pipeline, cpu_cores=cores, steps_timed=30)
                campaign.add(axes, FakeRun([[1.0] + [0.2 / cores] * 30]))
    saved, table = campaign.save(), collect(campaign.layout)
    (chart,) = curves.speedup(campaign.layout, table, saved)
    ideal = [(trace["x"], trace["y"]) for trace in chart["traces"] if trace["name"] == "ideal"]
    assert ideal == [([1.0, 2.0, 4.0], [1.0, 2.0, 4.0]), ([2.0, 4.0], [1.0, 2.0])]
    campaign = FakeCampaign(tmp_path, "r", varied=("pipeline", "ranks_per_node"), repeats=1)
    for pipeline, ranks in (("whole", 1), ("whole", 4), ("late", 2), ("late", 4)):
        axes = Axes(workload="replay", pipeline=pipeline, cpu_cores=4, ranks_per_node=ranks, steps_timed=30)
        campaign.add(axes, FakeRun([[1.0] + [0.2] * 30] * ranks))
    saved, table = campaign.save(), collect(campaign.layout)
    with style.applied():
        figure = scaling_ranks.figure(campaign.layout, table, saved)
    lines = [line for line in figure.axes[0].lines if line.get_label() == "ideal"]
    assert [list(line.get_ydata()) for line in lines] == [[1.0, 2.0, 4.0], [1.0, 2.0]]


def scattered(seconds: float, seed: int) -> FakeRun:
    return FakeRun([[1.0, *(seconds * np.exp(0.05 * np.random.default_rng(seed).normal(size=40)))]])


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (1, "95 % interval within one run, not between runs"),
        (2, "95 % interval (of points run once: within that run, not between runs)"),
    ],
)
def test_captions_say_what_an_interval_rests_on(tmp_path: Path, runs: int, words: str) -> None:
    """Three repeats were asked for; of the first point ``runs`` were measured so far, of the others one."""
    campaign = FakeCampaign(tmp_path, "c", varied=("encoding", "cpu_cores"), repeats=3)
    for encoding in ("native", "npy"):
        for cores in (1, 2):
            axes = Axes(workload="replay", encoding=encoding, cpu_cores=cores, steps_timed=40)
            for repeat in range(runs if encoding == "native" else 1):
                campaign.add(axes, scattered(0.2 / cores, 2 * repeat + cores), repeat=repeat)
    saved, table = campaign.save(), collect(campaign.layout)
    for name in ("encoding", "images-per-second", "speed-up"):
        with style.applied():
            figure = MAKERS[name](campaign.layout, table, saved)
        assert words in figure.get_suptitle().replace("\n", " "), name
    notes = [*bars.encodings(campaign.layout, table, saved), *curves.rate(campaign.layout, table, saved)]
    assert all(words in chart["note"] for chart in notes)


def test_staging_is_not_judged_by_rates_not_to_rely_on(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "c", varied=("storage",), repeats=1)
    copied = {"event": "stage", "t_s": 0.0, "from_path": "a", "to_path": "b", "seconds": 30.0, "bytes": 9, "files": 1}
    campaign.add(Axes(workload="replay", steps_timed=30), FakeRun([[1.0] + [0.4] * 30]))
    staged = FakeRun(growing_slower().durations, events=[copied])
    campaign.add(Axes(workload="replay", storage="scratch", steps_timed=30), staged)
    saved = campaign.save()
    (panel,) = storage_staging.data(collect(campaign.layout), saved)
    assert storage_staging.verdict(panel) == "a rate is not to be relied on, see `harness check`"


def test_parts_of_a_step_are_of_runs_under_one_condition(tmp_path: Path) -> None:
    """Two warm runs that wait for a quarter of a step of 200 ms, a cold one of a second: none of it is averaged."""
    campaign = FakeCampaign(tmp_path, "c", varied=("cpu_cores",), repeats=3)
    for cores in (1, 2):
        for repeat, (state, step_s) in enumerate((("warm", 0.2), ("warm", 0.2), ("cold", 1.0))):
            event = {"event": "cache", "t_s": 0, "wanted": state, "state": state}
            waits = [0.0] + [(step_s - 0.15) / cores] * 30
            run = FakeRun([[1.0] + [step_s / cores] * 30], waits=waits, events=[event])
            campaign.add(Axes(workload="replay", cpu_cores=cores, steps_timed=30), run, repeat=repeat)
    saved, table = campaign.save(), collect(campaign.layout)
    assert [bar.milliseconds["wait"] for bar in time_shares.data(table, saved)] == pytest.approx([50.0, 25.0])
    _, (panel,) = ceilings.data(table, saved)
    assert panel.compute == pytest.approx((32 / 0.15, 64 / 0.15))
