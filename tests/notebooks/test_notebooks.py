"""Every notebook runs from its first cell to its last on a copy of the committed results, and draws its figures."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

from harness.analysis.recommend import Answer, recommend
from harness.report.notebook import opened

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
EXPECTED = {"scaling", "threads_prefetch", "compare_clusters", "batch_repetition", "storage"}


def test_all_notebooks_are_there() -> None:
    assert {path.stem for path in NOTEBOOKS} == EXPECTED


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_runs_and_every_figure_cell_shows_a_picture(path: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "results" / "published", tmp_path / "results" / "published")
    shutil.copytree(
        ROOT / "results" / "sample", tmp_path / "results" / "sample", ignore=shutil.ignore_patterns("data", "lock")
    )
    (tmp_path / "notebooks").mkdir()
    notebook = nbformat.read(path, as_version=4)
    needed = set(re.findall(r'"(sample/[^"]+)"', path.read_text().replace('\\"', '"')))
    missing = [name for name in sorted(needed) if not (ROOT / "results" / name / "campaign.json").is_file()]
    if missing:
        pytest.skip(f"not measured here: {', '.join(missing)}; `make sample` measures them")
    for cell in notebook.cells:
        assert not cell.get("outputs"), "commit notebooks without their outputs"
    with tempfile.TemporaryDirectory() as short:  # sockets with a name: of free ports another may take one meanwhile
        config = Config(KernelManager={"transport": "ipc", "ip": f"{short}/kernel"})
        client = NotebookClient(notebook, config=config, timeout=500, startup_timeout=300, kernel_name="python3")
        client.resources = {"metadata": {"path": tmp_path / "notebooks"}}
        client.execute()
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        kinds = {kind for output in cell.outputs for kind in output.get("data", {})}
        if ".figure(" in cell.source or cell.source.rstrip().endswith("\nfigure"):
            assert "image/png" in kinds, cell.source
        elif cell.source.startswith("Markdown("):
            assert "text/markdown" in kinds


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_imports_the_analysis_side_only(path: Path) -> None:
    source = "\n".join(c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code")
    for line in source.splitlines():
        if line.startswith(("import harness", "from harness")):
            assert line.split()[1].startswith(("harness.analysis", "harness.report")), line


def test_the_sample_with_a_known_truth_is_predicted_within_four_percent(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "results" / "sample" / "pipeline_clock", tmp_path / "pipeline_clock")
    (group,) = opened("pipeline_clock", tmp_path).groups()
    answer = recommend(group)
    assert isinstance(answer, Answer)
    assert answer.model.held_out_median <= 0.04
    # 60 ms of preparation against steps of 20 ms: three workers with as many places keep up
    assert answer.setting.workers in (3, 4) and answer.setting.prefetch == 4
    assert answer.rate.value == pytest.approx(32 / 0.02, rel=0.05)
