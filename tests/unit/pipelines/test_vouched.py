"""A tree of images is called what it is, whatever the sweep calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runtime_support import spec_of

from harness.comm.none import NoExchange
from harness.datasets import published
from harness.datasets.make import make
from harness.datasets.manifest import Request
from harness.pipelines.trees import image_tree
from harness.runtime.clock import VirtualClock
from harness.runtime.interfaces import Ranks, RunContext


def noted(path: Path, dataset: str) -> list[dict[str, Any]]:
    """What a rank notes when it lists the files of a tree."""
    notes: list[dict[str, Any]] = []
    spec = spec_of(workload="resnet_imagenet", framework="torch", dataset=dataset, pipeline="torch_files", batch_size=4)
    note = lambda kind, **fields: notes.append({"event": kind, **fields})  # noqa: E731
    image_tree(RunContext(spec, Ranks(0, 1, 0, 1, "n"), (0,), 1, NoExchange(), VirtualClock(), "cpu", path, note))
    return notes


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three files that nothing vouches for."""
    folder = tmp_path / "256_ObjectCategories" / "001.ak47"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"001_{number:04d}.jpg").touch()
    return tmp_path


def test_a_tree_that_nothing_vouches_for_is_not_called_real(tree: Path) -> None:
    data, finding = noted(tree, "caltech256")
    assert (data["origin"], data["dataset"], data["samples"]) == ("unknown", "unknown:caltech256", 3)
    assert finding["code"] == "data_origin"
    assert finding["advice"].endswith("see: harness data describe caltech256")


def test_a_tree_of_the_published_size_is(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(published.COUNTS, "caltech256", {"train": 3})
    [data] = noted(tree, "caltech256")
    assert (data["event"], data["origin"], data["samples"]) == ("data", "real", 3)


@pytest.mark.parametrize(("asked", "codes"), [("synthetic:caltech256", []), ("caltech256", ["data_origin"])])
def test_a_made_tree_is_told_of_by_its_manifest(tmp_path: Path, asked: str, codes: list[str]) -> None:
    request = Request(format="caltech256", origin="synthetic", counts={"train": 4}, options={"classes": 2})
    make(tmp_path / "set", request)
    notes = noted(tmp_path / "set", asked)
    assert [note["code"] for note in notes] == codes
