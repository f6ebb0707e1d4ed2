"""Every figure with awkward data: it is drawn or says what is missing, and what is drawn can be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from awkward_support import SHAPES, SUBJECTS, USUAL, Shape, along, campaign, over_ranks, over_two
from figure_support import complaints
from matplotlib.figure import Figure

from harness.analysis.collect import collect
from harness.report import plots
from harness.report.plots import style


def figures(root: Path, shape: Shape, subject: Callable, sweep: str = "awkward") -> dict[str, Figure | str]:
    made = campaign(root, shape, subject, sweep)
    saved, table = made.save(), None
    table = collect(made.layout)
    found: dict[str, Figure | str] = {}
    for name in SUBJECTS[subject]:
        with style.applied():
            found[name] = plots.MAKERS[name](made.layout, table, saved)
            if keep := os.environ.get("KEEP_FIGURES"):
                _keep(found[name], Path(keep) / f"{name}-{root.name}.png")
    return found


def _keep(figure: Figure | str, path: Path) -> None:
    """For people who want to look: ``KEEP_FIGURES=/tmp/figures pytest …``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(figure, str):
        figure.savefig(path)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.__name__)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("ignore:Glyph .* missing from")
def test_what_is_drawn_can_be_read(tmp_path: Path, shape: str, subject: Callable) -> None:
    found = figures(tmp_path / shape, SHAPES[shape], subject)
    drawn = {name: figure for name, figure in found.items() if not isinstance(figure, str)}
    if shape not in ("one_point", "one_series_failed"):
        assert set(drawn) == set(SUBJECTS[subject]), {n: f for n, f in found.items() if isinstance(f, str)}
    with style.applied():
        assert {name: complaints(figure) for name, figure in drawn.items()} == {name: [] for name in drawn}


@pytest.mark.parametrize(
    ("sweep", "subject"),
    [("alcf_threads_prefetch", over_two), ("dell_pipeline_order", over_ranks), ("alcf_threads_prefetch", along)],
)
def test_the_published_numbers_beside_can_be_read(tmp_path: Path, sweep: str, subject: Callable) -> None:
    found = figures(tmp_path / sweep, USUAL, subject, sweep)
    with style.applied():
        assert {name: complaints(figure) for name, figure in found.items() if not isinstance(figure, str)} == {
            name: [] for name, figure in found.items() if not isinstance(figure, str)
        }


def test_every_figure_has_its_awkward_data() -> None:
    assert {name for names in SUBJECTS.values() for name in names} == set(plots.MAKERS)


def test_a_bad_figure_is_complained_about() -> None:
    figure = Figure(figsize=(3, 2))
    ax = figure.subplots()
    ax.set_xticks([0, 0.1, 5], ["first label", "second label", "third"])
    ax.set_title("a title that is much longer than three inches of a figure can hold in one line")
    found = complaints(figure)
    assert any("lies on" in text for text in found) and any("cut off" in text for text in found)
