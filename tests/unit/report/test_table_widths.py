"""Tables in terminals of every width: nothing is cut off, no word is broken."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from harness.report.grid import REMARKS, Grid
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
        assert notes.startswith("others use the cores (3), short window, few independent steps; see")
    else:
        assert set(table.split()) >= REMARK_WORDS
        assert len(table.splitlines()) <= 2 + 4 + 3 * len(GRID.rows)
