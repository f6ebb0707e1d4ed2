"""The report's charts: each figure has one, awkward data break none, published numbers stand beside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from awkward_support import SHAPES, SUBJECTS, USUAL, Shape, along, campaign, over_ranks, over_two, queues

from harness.analysis.collect import collect
from harness.analysis.points import point_results
from harness.report import plots
from harness.report.html import charts, content

#: Shown in the report by the chart of step times, which has a menu instead of a grid.
IN_ANOTHER = {"queue-grid"}


def made(root: Path, shape: Shape, subject: Callable, sweep: str = "awkward") -> tuple[list[Any], dict[str, str]]:
    one = campaign(root, shape, subject, sweep)
    saved = one.save()
    table = collect(one.layout)
    results = point_results(table)
    points = content.points_data(one.layout, table, results, saved)
    drawn, missing = charts.all_charts(one.layout, table, saved, points, range(len(points)))
    return drawn, dict(missing)


def test_each_figure_has_a_chart() -> None:
    assert {*charts.MAKERS, "step-time"} | IN_ANOTHER == set(plots.MAKERS)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.__name__)
@pytest.mark.parametrize("shape", ["one_point", "missing_cells", "long_names", "huge", "one_series_failed"])
def test_awkward_data_give_charts_that_a_browser_can_read(tmp_path: Path, shape: str, subject: Callable) -> None:
    drawn, missing = made(tmp_path, SHAPES[shape], subject)
    json.dumps(drawn, allow_nan=False)
    if shape != "one_point":
        assert set(missing) & {*SUBJECTS[subject]} <= {"ceilings", "two-axes-lines"}
    for chart in drawn:
        for part in chart.get("choices", [chart]):
            if "point" not in part:
                assert part["traces"] and all(len(trace["x"]) for trace in part["traces"])


def titles(drawn: list[Any]) -> list[str]:
    return [chart["title"] for chart in drawn]


def test_the_published_grid_stands_beside_as_map_and_as_lines(tmp_path: Path) -> None:
    drawn, _ = made(tmp_path, USUAL, over_two, "alcf_threads_prefetch")
    beside = [chart for chart in drawn if "published" in chart["title"]]
    assert [chart["traces"][0]["type"] for chart in beside] == ["heatmap", "scatter"]
    (heat,) = beside[0]["traces"]
    assert heat["z"][heat["y"].index("1")][heat["x"].index("2")] == 155.8
    assert [line["name"] for line in beside[1]["traces"]] == [f"prefetch {n}" for n in (1, 2, 3, 8, 16, 32)]


def test_published_scaling_is_a_line_of_both_charts(tmp_path: Path) -> None:
    drawn, _ = made(tmp_path, USUAL, over_ranks, "dell_pipeline_order")
    over = [chart for chart in drawn if chart["title"].endswith("over ranks")]
    lines = [[line for line in chart["traces"] if line["name"].startswith("published")][0] for chart in over]
    assert [round(line["y"][-1], 2) for line in lines] == [10.33, 0.65]


def test_many_panels_become_one_chart_with_a_menu(tmp_path: Path) -> None:
    drawn, _ = made(tmp_path, Shape(series=6, repeats=1), over_two)
    (one,) = [chart for chart in drawn if chart["title"].startswith("parallel threads × prefetch")]
    assert [choice["label"] for choice in one["choices"]] == [f"s{n}" for n in range(6)]


def test_hostile_names_are_escaped_in_what_plotly_reads(tmp_path: Path) -> None:
    drawn, _ = made(tmp_path, Shape(series=2, name="<b>&"), along)
    names = [trace["name"] for trace in drawn[0]["traces"]]
    assert names == ["&lt;b&gt;&amp;0", "&lt;b&gt;&amp;1"]


def test_a_queue_has_maps_and_a_menu_of_points(tmp_path: Path) -> None:
    drawn, _ = made(tmp_path, USUAL, queues)
    assert [t for t in titles(drawn) if t.startswith("workers × batch interval")] == [
        "workers × batch interval: replay",
        "workers × batch interval: put into the queue, images/s",
        "workers × batch interval: mean step time, ms",
    ]
    (steps,) = [chart for chart in drawn if chart["title"] == "Step time and queue against step"]
    assert len(steps["choices"]) == 6
