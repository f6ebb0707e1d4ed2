"""Tables in terminals of every width: nothing is cut off, no word is broken."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from evidence_support import FakeCampaign, FakeRun
from rich.console import Console

from harness.analysis.collect import collect
from harness.model.axes import Axes
from harness.report.grid import REMARKS, Grid, points_grid
from harness.report.tables import print_grid

GRID = Grid(
    title="study",
    headers=("workload", "cpu cores", "images/s", "time", "speed-up", "runs", REMARKS),
    numeric=(False, True, True, True, True, True, False),
    rows=(
        ("dcgan_mnist", "1", "46.16", "8.28 s", "1", "1", "short window, others use the cores"),
        ("dcgan_mnist", "2", "75 [34, 166]", "5.12 s", "1.625", "1", "few independent steps, others use the cores"),
        ("resnet20_cifar10", "2", "401 [369, 436]", "1.91 s", "5.361", "1", "others use the cores"),
    ),
)
WORDS = {word for row in GRID.rows for cell in row[:-1] for word in cell.split()}
REMARK_WORDS = {word for row in GRID.rows for word in row[-1].split()}


@pytest.mark.parametrize("width", range(64, 130))
def test_every_word_stands_whole(width: int) -> None:
    stream = io.StringIO()
    print_grid(GRID, Console(file=stream, width=width))
    table, _, notes = stream.getvalue().partition("\n* ")
    assert max(map(len, table.splitlines())) <= width
    assert set(table.split()) >= WORDS
    assert (REMARKS in table) != bool(notes)
    if notes:
        told = " ".join(notes.split())
        assert told.startswith("others use the cores (3), short window, few independent steps; see `harness check`.")
        assert max(map(len, stream.getvalue().splitlines())) <= width
    else:
        assert set(table.split()) >= REMARK_WORDS
        assert len(table.splitlines()) <= 2 + 4 + 3 * len(GRID.rows)


def test_an_axis_that_goes_with_another_is_named_below(tmp_path: Path) -> None:
    """As in a group of zip: without it a reader would take the rates for the other axis's doing."""
    campaign = FakeCampaign(tmp_path, "together")
    for cores, size in ((1, 32), (2, 64)):
        axes = Axes(workload="replay", cpu_cores=cores, batch_size=size)
        campaign.add(axes, FakeRun(durations=[[0.1 / cores] * 30]))
    saved = campaign.save()
    saved = saved.model_copy(update={"varied": ("cpu_cores", "batch_size")})
    made = points_grid(collect(campaign.layout), saved)
    assert "batch size" not in made.headers
    assert "No column: batch size, which goes with the others (32, 64)." in made.notes
