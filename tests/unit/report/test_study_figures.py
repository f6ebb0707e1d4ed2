"""Figures of the studies: their data are exact, published numbers stand beside, and what is missing is said."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis.collect import collect
from harness.model.axes import Axes
from harness.report import plots
from harness.report.plots import (
    axis_grid,
    ceilings,
    encoding_bars,
    heat,
    loss_rate,
    queue_grid,
    queue_surfaces,
    scaling_ranks,
    storage_staging,
    utilisation,
)


def axes(**values: object) -> Axes:
    return Axes.model_validate({"workload": "replay", "steps_timed": 20} | values)


def steps(seconds: float, ranks: int = 1, **more: object) -> FakeRun:
    return FakeRun([[1.0] + [seconds] * 20] * ranks, **more)  # type: ignore[arg-type]


def drawn(campaign: FakeCampaign, table: pd.DataFrame) -> dict[str, str]:
    """Figures drawn, and what was said of the others; every file is a PNG that is no blank."""
    result = plots.draw_all(campaign.layout, table, campaign.save(), ("png",))
    assert all(path.read_bytes()[:4] == b"\x89PNG" and path.stat().st_size > 5000 for path in result.files)
    return dict(result.skipped) | {path.stem: "drawn" for path in result.files}


def test_threads_and_prefetch_with_the_published_grid(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "alcf_threads_prefetch", varied=("parallel_threads", "prefetch"), repeats=1)
    for threads, prefetch in ((1, 0), (1, 8), (4, 0)):
        campaign.add(axes(parallel_threads=threads, prefetch=prefetch), steps(0.2 / threads))
    unsteady = FakeRun([[0.1 * (1 + i / 8) for i in range(21)]])
    campaign.add(axes(parallel_threads=16, prefetch=0), unsteady)
    saved = campaign.save()
    table = collect(campaign.layout)
    grids = axis_grid.data(campaign.layout, table, saved)
    assert isinstance(grids, axis_grid.Grids)
    (own,) = grids.maps
    assert (own.rows, own.columns) == ((1, 4, 16), (0, 8))
    assert own.cells[4, 0] == pytest.approx(640)
    assert (4, 8) not in own.cells
    assert own.doubtful == {(16, 0)}
    assert grids.study is not None
    assert grids.study.cells[1, 2] == 155.8
    assert drawn(campaign, table)["two-axes"] == "drawn"


def test_scaling_over_ranks_against_the_published_one(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "dell_pipeline_order", varied=("pipeline", "ranks_per_node", "nodes"), repeats=1)
    for pipeline in ("tf_records_old", "tf_records_new"):
        for ranks, nodes in ((1, 1), (2, 1), (2, 2)):
            slower = ranks * nodes if pipeline.endswith("old") else 1
            point = axes(pipeline=pipeline, ranks_per_node=ranks, nodes=nodes, cpu_cores=ranks)
            campaign.add(point, steps(0.2 * slower, ranks * nodes))
    saved = campaign.save()
    table = collect(campaign.layout)
    series = scaling_ranks.data(campaign.layout, table, saved)
    assert isinstance(series, list)
    new, old, study = series
    assert (new.label, new.ranks, new.speedup) == ("tf_records_new", (1, 2, 4), pytest.approx((1, 2, 4)))
    assert old.speedup == pytest.approx((1, 1, 1))
    assert study.published and study.ranks[-1] == 16
    assert study.speedup[-1] == pytest.approx(1912.82 / 185.12)
    assert drawn(campaign, table)["scaling"] == "drawn"


def stage(seconds: float) -> list[dict]:
    return [
        {"event": "stage", "t_s": 0.0, "from_path": "a", "to_path": "b", "seconds": seconds, "bytes": 9, "files": 1}
    ]


def test_staging_breaks_even_where_the_lines_cross(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "s", varied=("storage", "encoding"), repeats=1)
    for encoding, direct_s in (("native", 0.4), ("lmdb", 0.1)):
        campaign.add(axes(storage="hpctmp", encoding=encoding), steps(direct_s))
        campaign.add(axes(storage="scratch", encoding=encoding), steps(0.2, events=stage(30.0)))
    saved = campaign.save()
    table = collect(campaign.layout)
    lmdb, native = storage_staging.data(table, saved)
    assert (lmdb.title, native.title) == ("lmdb", "native")
    # 30 s + N · 0.2 / 32 = N · 0.4 / 32
    assert native.break_even == pytest.approx(4800)
    assert math.isnan(lmdb.break_even)
    bars = encoding_bars.data(table, saved)
    assert (bars.names, bars.groups) == (("lmdb", "native"), ("hpctmp", "scratch"))
    assert bars.values[0]["native"].value == pytest.approx(80)
    said = drawn(campaign, table)
    assert (said["storage-staging"], said["encoding"]) == ("drawn", "drawn")
    assert said["two-axes"] == "no two numeric axes were varied independently"


def queue_campaign(root: Path, name: str = "afrl") -> FakeCampaign:
    """2 workers × 2 batch intervals; the queue gains half a batch a step; the loss rises with the interval."""
    campaign = FakeCampaign(root, name, varied=("workers", "batch_interval"), repeats=1)
    for workers in (1, 4):
        for interval in (1, 2):
            loss = [{"event": "loss", "t_s": 1.0, "step": 20, "value": 0.25 * interval}]
            fresh = [32 if step % interval == 0 else 0 for step in range(21)]
            occupancy = [10 + step // 2 for step in range(21)]
            run = steps(0.2 / workers, fresh=fresh, occupancy=occupancy, events=loss)
            campaign.add(axes(workers=workers, batch_interval=interval, batch_size=32), run)
    return campaign


def test_queues_over_two_axes(tmp_path: Path) -> None:
    campaign = queue_campaign(tmp_path)
    saved = campaign.save()
    table = collect(campaign.layout)
    surfaces = queue_surfaces.data(campaign.layout, table, saved)
    assert isinstance(surfaces, queue_surfaces.Surfaces)
    # 19 batches taken and 10 gained in the 19 steps between the readings of steps 1 and 20
    assert surfaces.enqueue.cells[1, 1] == pytest.approx((19 + 10) * 32 / (19 * 0.2))
    assert surfaces.enqueue.cells[4, 2] == pytest.approx((9 + 10) * 32 / (19 * 0.05))
    assert surfaces.step_ms.cells[4, 1] == pytest.approx(50)
    grid = queue_grid.data(campaign.layout, table, saved)
    assert isinstance(grid, queue_grid.Grid)
    assert sorted(grid.cells) == [(1, 1), (1, 2), (4, 1), (4, 2)]
    assert grid.cells[1, 1].step_ms == pytest.approx([200] * 20)
    assert list(grid.cells[1, 1].occupancy[[0, -1]]) == [10, 20]
    assert grid.study == {}
    outcomes = loss_rate.data(table)
    assert {(o.group, o.loss) for o in outcomes} == {("batch interval 1", 0.25), ("batch interval 2", 0.5)}
    said = drawn(campaign, table)
    assert {said[name] for name in ("queue-grid", "enqueue-rate", "loss", "two-axes")} == {"drawn"}


def test_published_step_times_are_drawn_into_the_grid(tmp_path: Path) -> None:
    campaign = queue_campaign(tmp_path, "afrl_batch_interval")
    saved = campaign.save()
    grid = queue_grid.data(campaign.layout, collect(campaign.layout), saved)
    assert isinstance(grid, queue_grid.Grid)
    assert list(grid.study.values()) == [50, 3]
    (legend,) = queue_grid.draw(grid, saved).legends
    assert [text.get_text() for text in legend.get_texts()] == list(grid.study)


def test_long_runs_are_drawn_as_window_means(tmp_path: Path) -> None:
    frame = pd.DataFrame({"step": range(1000), "begin_s": range(1000), "end_s": range(1, 1001), "occupancy": 4.0})
    cell = queue_grid._cell(frame)
    assert len(cell.step) == queue_grid.MOST_WINDOWS
    assert cell.step_ms == pytest.approx([1000] * 100)
    assert cell.step[0] == pytest.approx(4.5)


def test_utilisation_and_ceilings(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "aws_workers", varied=("workers",), repeats=1)
    for workers, waited_s in ((1, 0.15), (7, 0.0)):
        run = FakeRun([[1.0] + [0.05 + waited_s] * 20], waits=[0.0] + [waited_s] * 20)
        attempt = campaign.add(axes(workers=workers), run)
        samples = [{"t_s": 5.0 + t, "cpu_percent": [20, 40], "gpu": [{"util_percent": 33}]} for t in range(5)]
        attempt.samples("n1").write_text("".join(json.dumps(s) + "\n" for s in samples) + '{"torn')
    saved = campaign.save()
    table = collect(campaign.layout)
    one, seven = utilisation.data(campaign.layout, table, saved)
    assert (one.title, seven.title) == ("1 worker", "7 workers")
    assert (list(one.seconds), list(one.cpu), list(one.gpu)) == ([0, 1, 2, 3, 4], [30] * 5, [33] * 5)
    found = ceilings.data(table, saved)
    assert not isinstance(found, str)
    (panel,) = found[1]
    assert panel.rate == pytest.approx((160, 640))
    assert panel.compute == pytest.approx((640, 640))
    assert panel.waiting == (True, False)
    said = drawn(campaign, table)
    assert (said["utilisation"], said["ceilings"], said["speed-up"]) == ("drawn", "drawn", "drawn")


def test_a_huge_map_stays_a_readable_size(tmp_path: Path) -> None:
    one = heat.make("x", {(row, column): 1.0 + row + column for row in range(40) for column in range(200)})
    assert heat.width(one) <= 11
    figure = axis_grid.draw(axis_grid.Grids("a", "b", (one,)), FakeCampaign(tmp_path).save())
    assert len(figure.axes[0].get_xticks()) <= heat.MOST_TICKS


def test_one_point_supports_none_of_them_and_each_says_why(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "one", varied=(), repeats=1)
    campaign.add(axes(), steps(0.2))
    campaign.save()
    said = drawn(campaign, collect(campaign.layout))
    assert {name: text for name, text in said.items() if text != "drawn"} == {
        "training-time": "no numeric axis was varied",
        "images-per-second": "no numeric axis was varied",
        "speed-up": "no numeric axis was varied",
        "scaling": "the number of ranks was not varied",
        "two-axes": "no two numeric axes were varied independently",
        "two-axes-lines": "no two numeric axes were varied independently",
        "encoding": "fewer than two values of encoding were measured",
        "storage-staging": "fewer than two storages were measured",
        "queue-grid": "no two numeric axes were varied independently",
        "enqueue-rate": "no two numeric axes were varied independently",
        "loss": "fewer than two points have a loss",
        "utilisation": "no run has two samples of utilisation",
        "ceilings": "no numeric axis was varied",
    }


def test_both_kinds_of_reuse_name_a_run_where_both_vary() -> None:
    reuse = {"batch_interval": [1, 1, 2], "echo": [1, 2, 1]}
    measured = {"counts": True, "state": "SUCCEEDED", "validation_loss": float("nan"), "consumed_per_s": 10.0}
    runs = pd.DataFrame({**reuse, "point_id": ["a", "b", "c"], "loss_last": [3.0, 2.0, 1.0]}).assign(**measured)
    outcomes = loss_rate.data(runs)
    assert {o.group for o in outcomes} == {
        "batch interval 1, echo 1",
        "batch interval 1, echo 2",
        "batch interval 2, echo 1",
    }


def test_queues_of_unlike_points_are_not_averaged(tmp_path: Path) -> None:
    """Two storages, one twice as slow; of each point a run has failed in its tenth step."""
    campaign = FakeCampaign(tmp_path, "c", varied=("storage", "workers", "batch_interval"), repeats=2)
    for storage, slower in (("hpctmp", 1), ("scratch", 2)):
        for workers in (1, 4):
            for interval in (1, 2):
                point = axes(storage=storage, workers=workers, batch_interval=interval, batch_size=32)
                drifts = 0.5 if (workers, interval) == (4, 2) else 0.0
                own = [1.0] + [0.2 * slower / workers * (1 + drifts * (step - 9.5) / 10) for step in range(20)]
                campaign.add(point, FakeRun([own], occupancy=[10] * 21))
                campaign.add(point, FakeRun([[1.0] + [9.0] * 9], occupancy=[10] * 10, exit_code=1), repeat=1)
    saved = campaign.save()
    table = collect(campaign.layout)
    found = queue_surfaces.data(campaign.layout, table, saved)
    assert found.step_ms.cells[1, 1] == pytest.approx(200)
    assert found.step_ms.cells[4, 2] == pytest.approx(50)
    assert found.note.endswith("; hpctmp alone; ?: do not rely on it")
    assert found.step_ms.doubtful == found.enqueue.doubtful == {(4, 2)}
    assert queue_grid.data(campaign.layout, table, saved).shared == "hpctmp"
