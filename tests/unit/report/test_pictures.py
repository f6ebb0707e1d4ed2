"""The pictures of the documentation: each drawn by docs/pictures.py, shown somewhere, small."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from evidence_support import FakeCampaign, FakeRun
from PIL import Image

from harness.analysis.collect import collect
from harness.model.axes import Axes
from harness.report import plots
from harness.report.notebook import Opened

ROOT = Path(__file__).resolve().parents[3]
#: Bytes that a picture may have: the repository keeps every version of it.
MOST_BYTES = 80_000


def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_is_made_by_the_command_shown_somewhere_and_small() -> None:
    made = pictures()
    wanted = {f"{campaign}-{figure}.png" for campaign, figure in made.FIGURES}
    wanted |= {f"{made.SHOWN}-table.svg", f"{made.SHOWN}-report.png"}
    there = {path.name: path for path in (ROOT / "docs" / "images").iterdir()}
    assert set(there) == wanted
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
    assert [name for name in there if f"images/{name})" not in pages] == []
    assert {name: path.stat().st_size for name, path in there.items() if path.stat().st_size > MOST_BYTES} == {}
    assert {figure for _, figure in made.FIGURES} <= set(plots.MAKERS)


def test_a_figure_and_a_table_are_drawn_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = FakeCampaign(tmp_path, "cores_workers", repeats=2)
    for cores in (1, 2):
        for repeat in range(2):
            run = FakeRun([[1.0] + [0.2 / cores * (1 + repeat / 50)] * 20])
            campaign.add(Axes(workload="replay", cpu_cores=cores, steps_timed=20), run, repeat=repeat)
    shown = Opened(campaign.layout, campaign.save(), collect(campaign.layout))
    made = pictures()
    monkeypatch.setattr(made, "opened", lambda *_: shown)
    monkeypatch.setattr(made, "IMAGES", tmp_path)
    drawn = made.draw("cores_workers", "images-per-second")
    with Image.open(drawn) as picture:
        assert picture.mode == "P" and picture.width > 400
    assert drawn.stat().st_size < 20_000
    svg = made.terminal().read_text(encoding="utf-8")
    assert "cpu&#160;cores" in svg and "font-face" not in svg
