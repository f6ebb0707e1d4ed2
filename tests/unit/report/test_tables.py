"""Tables as people and scripts get them."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest
from evidence_support import FakeCampaign, FakeRun
from rich.console import Console

from harness.analysis.collect import collect
from harness.analysis.stats import Estimate
from harness.model.axes import Axes
from harness.model.campaign import Campaign
from harness.report import grid, numbers, tables
from harness.report.grid import Grid
from harness.report.plots import time_against_axis
from harness.report.scaling_grid import scaling_grid

STEPS = [1.0] + [0.2] * 20


@pytest.fixture
def two_cores(tmp_path: Path) -> tuple[pd.DataFrame, Campaign]:
    """1 core: 160 images/s, exactly; 2 cores: about 290, one repeat failed."""
    campaign = FakeCampaign(tmp_path, "cores", repeats=2)
    for repeat in range(2):
        campaign.add(Axes(workload="replay", cpu_cores=1, steps_timed=20), FakeRun([STEPS]), repeat=repeat)
    two = Axes(workload="replay", cpu_cores=2, steps_timed=20)
    campaign.add(two, FakeRun([[1.0] + [0.11] * 20]), repeat=0)
    campaign.add(two, FakeRun([[1.0] + [0.11] * 5], exit_code=9), repeat=1)
    saved = campaign.save()
    return collect(campaign.layout), saved


def printed(table: pd.DataFrame, campaign: Campaign, width: int) -> str:
    stream = io.StringIO()
    tables.render_terminal(table, campaign, Console(file=stream, width=width))
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().splitlines())


def test_the_terminal_table(two_cores: tuple[pd.DataFrame, Campaign]) -> None:
    assert printed(*two_cores, width=100) == "\n".join(
        [
            "cores",
            "cpu cores  images/s    time  speed-up  runs    remarks",
            "─" * 76,
            "        1     160.0  4.00 s         1  2",
            "        2     290.9  2.20 s     1.818  1 of 2  FAILED, few independent steps",
            "Data: synthetic (not the published sets).",
            "In brackets: 95 % interval; that of a point with one run is within it, which tells nothing of how",
            "  runs differ. Time: the timed steps alone.",
        ]
    )


def test_a_narrow_terminal_breaks_no_word(two_cores: tuple[pd.DataFrame, Campaign]) -> None:
    text = printed(*two_cores, width=46)
    assert "* FAILED, few independent steps; see\n  `harness check`.\n" in text
    assert "1 of 2 *" in text
    assert "remarks" not in text


def test_csv_loads_in_pandas(two_cores: tuple[pd.DataFrame, Campaign]) -> None:
    read = pd.read_csv(io.StringIO(tables.to_csv(grid.points_grid(*two_cores))))
    assert read["cpu cores"].tolist() == [1, 2]
    assert read["images/s"].tolist() == [160.0, 290.9]


def test_markdown_escapes_what_would_break_a_table() -> None:
    made = grid.Grid("t", ("a|b", "c"), (True, False), (("1", "x|y\nz"),), ("note",))
    assert tables.to_markdown(made) == "| a\\|b | c |\n|---:|:---|\n| 1 | x\\|y z |\n\nnote\n"


def test_markup_in_names_is_printed_as_it_is() -> None:
    stream = io.StringIO()
    made = grid.Grid("[red]t[/red]", ("[b]h",), (False,), (("[link=x]y",),))
    tables.print_grid(made, Console(file=stream, width=80))
    assert all(text in stream.getvalue() for text in ("[red]t[/red]", "[b]h", "[link=x]y"))


def test_an_empty_campaign_says_so(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "empty", repeats=2)
    campaign.plan(Axes(workload="replay"))
    saved = campaign.save()
    text = printed(collect(campaign.layout), saved, 80)
    assert "nothing measured yet" in text
    assert "2 of 2 runs have not been tried yet." in text


def test_records_are_full_numbers_and_json_safe(two_cores: tuple[pd.DataFrame, Campaign]) -> None:
    one, two = tables.points_records(*two_cores)
    assert one["images_per_s"] == pytest.approx(160.0)
    assert one["axes"] == {"cpu_cores": 1}
    assert two["states"] == {"SUCCEEDED": 1, "FAILED": 1}
    assert two["interval"] == "within"


def test_a_pivot_has_an_interval_and_a_count_in_each_cell(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "grid", varied=("parallel_threads", "prefetch"), repeats=2)
    for threads in (1, 4):
        for prefetch in (0, 8):
            if (threads, prefetch) == (4, 8):
                continue
            point = Axes(workload="replay", parallel_threads=threads, prefetch=prefetch, steps_timed=20)
            for repeat, factor in enumerate((1.0, 1.02)):
                durations = [1.0] + [0.2 / threads * factor] * 20
                campaign.add(point, FakeRun([durations]), repeat=repeat)
    saved = campaign.save()
    (made,) = grid.pivot_grids(collect(campaign.layout), saved, "parallel_threads", "prefetch")
    assert made.headers == ("parallel_threads \\ prefetch", "0", "8")
    assert made.rows[0] == ("1", "158 [140, 180] n=2", "158 [140, 180] n=2")
    assert made.rows[1] == ("4", "634 [559, 719] n=2", "–")
    assert made.notes == ("In brackets: 95 % interval. n: runs.",)


def test_speed_ups_against_a_point_not_to_rely_on_are_told(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "c", repeats=2)
    for repeat in range(2):
        slower = FakeRun([[0.02 * (1 + step / 4) for step in range(21)]])
        campaign.add(Axes(workload="replay", cpu_cores=1, steps_timed=20), slower, repeat=repeat)
        campaign.add(Axes(workload="replay", cpu_cores=2, steps_timed=20), FakeRun([[1.0] + [0.2] * 20]), repeat=repeat)
    saved = campaign.save()
    told = "Do not rely on speed-ups against 1 cpu core: that point is not to be relied on."
    for made in (grid.points_grid(collect(campaign.layout), saved), scaling_grid(collect(campaign.layout), saved)):
        assert made.notes[-1] == told


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(1.7123, 0.02, 10.0, 5, "ratio"), "1.71 [1.64, 1.79]"),
        (Estimate(17123.0, 0.02, 10.0, 5, "ratio"), "17100 [16400, 17900]"),
        (Estimate(850542.0, 0.022, 10.0, 5, "ratio"), "851000 [810000, 893000]"),
        (Estimate(2610.0, 0.002, 10.0, 5, "ratio"), "2610 [2598, 2622]"),
        (Estimate(0.76, 1.0, 4.0, 3, "ratio"), "0.76 [0.05, 12.21]"),
        (Estimate(320.0, 0.0, 4.0, 3, "between"), "320.0"),
        (Estimate(1.0, 0.0, 4.0, 3, "ratio"), "1"),
        (Estimate(320.0, float("nan"), 0.0, 1, "none"), "320.0"),
        (Estimate(float("nan"), float("nan"), 0.0, 0, "none"), "–"),
    ],
)
def test_numbers_show_the_digits_they_deserve(estimate: Estimate, text: str) -> None:
    assert numbers.with_interval(estimate) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0123, "0.0123 s"), (59.96, "60.0 s"), (250.0, "4 min 10 s"), (11100, "3 h 05 min"), (float("nan"), "–")],
)
def test_durations(seconds: float, text: str) -> None:
    assert numbers.duration(seconds) == text


def test_columns_that_do_not_fit_follow_in_a_table_of_their_own() -> None:
    headers = ("host", "cores", *(f"prefetch {n}" for n in range(8)))
    rows = tuple((name, "2", *(f"{n}00 [10{n}, 19{n}] n=3" for n in range(1, 9))) for name in ("alpha", "beta"))
    made = Grid("wide", headers, (False, *(True for _ in headers[1:])), rows, ("a note",), keys=2)
    stream = io.StringIO()
    tables.print_grid(made, Console(file=stream, width=60))
    text = stream.getvalue()
    assert all(f"prefetch {n}" in text or f"{n}\n" in text for n in range(8))
    assert all(f"[10{n}, 19{n}]" in text for n in range(1, 9))
    assert max(map(len, text.splitlines())) <= 60
    assert text.count("alpha") == text.count("host") > 1
    assert text.count("a note") == 1


@pytest.mark.parametrize(("axis", "told"), [("ranks_per_node", True), ("cpu_cores", False)])
def test_times_of_steps_of_unlike_size_are_not_to_be_compared(tmp_path: Path, axis: str, told: bool) -> None:
    campaign = FakeCampaign(tmp_path, "c", varied=(axis,), repeats=1)
    for number in (1, 2):
        axes = Axes(workload="replay", steps_timed=20, **{"cpu_cores": 2, axis: number})
        campaign.add(axes, FakeRun([[1.0] + [0.1] * 20] * axes.ranks_per_node))
    saved = campaign.save()
    table = collect(campaign.layout)
    notes = grid.points_grid(table, saved).notes
    assert any("not of one number of images: compare images/s" in note for note in notes) is told
    assert bool(time_against_axis.data(table, saved).remark) is told
