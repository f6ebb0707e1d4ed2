"""Every gradient exchange under mpirun: two ranks train as one process does on the full batch."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime_support import ROOT, clean_environment

pytest.importorskip("tensorflow")
pytest.importorskip("torch")

pytestmark = [pytest.mark.framework, pytest.mark.mpi]
PROGRAM = Path(__file__).with_name("comm_program.py")
needs_horovod = pytest.mark.skipif(importlib.util.find_spec("horovod") is None, reason="needs `make horovod`")
EXCHANGES = [
    ("torch", "mpi4py"),
    ("tensorflow", "mpi4py"),
    pytest.param("torch", "horovod", marks=needs_horovod),
    pytest.param("tensorflow", "horovod", marks=needs_horovod),
    ("torch", "torch_ddp"),
]
TOLERANCE = 1e-5


def start(ranks: int, directory: Path, framework: str, comm: str, batch_size: int, *flags: str) -> Any:
    directory.mkdir()
    words = [sys.executable, str(PROGRAM), framework, comm, str(batch_size), str(directory), *flags]
    return subprocess.run(
        ["mpirun", "-np", str(ranks), "--map-by", "socket", "--bind-to", "none", *words],
        env=clean_environment(OMP_NUM_THREADS="1", PYTHONPATH=f"{ROOT}:{ROOT / 'tests'}"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=540,
    )


def launch(ranks: int, directory: Path, *words: Any) -> list[dict]:
    run = start(ranks, directory, *words)
    assert run.returncode == 0, run.stderr
    return [dict(np.load(directory / f"rank{rank}.npz")) for rank in range(ranks)]


def distance(one: dict, other: dict) -> float:
    """Largest difference of any parameter."""
    return max(float(np.abs(one[name] - other[name]).max()) for name in one if name.startswith("p"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """One process on the full batch, by framework."""
    root = tmp_path_factory.mktemp("whole")
    return {name: launch(1, root / name, name, "none", 16)[0] for name in ("torch", "tensorflow")}


@pytest.mark.parametrize(("framework", "comm"), EXCHANGES)
def test_two_ranks_equal_one_process_on_the_full_batch(tmp_path, whole, framework, comm):
    ranks = launch(2, tmp_path / "two", framework, comm, 8)
    assert distance(ranks[0], ranks[1]) == 0
    assert distance(ranks[0], whole[framework]) < TOLERANCE
    for number, rank in enumerate(ranks):
        assert list(rank["texts"]) == ["rank 0 says ü", "rank 1 says ü"]
        assert rank["b0"].dtype == np.int64 and list(rank["b0"]) == [0, 1, 2]
        assert rank["b1"].shape == (2, 2) and not rank["b1"].any() and rank["b2"].shape == (0,)
        assert rank["m0"].shape == (2, 3) and (rank["m0"] == 0.5).all() and rank["m1"].shape == (0, 4), number
    # an exchange within the backward pass or the graph is not separable, and says 0
    overlapping = (framework, comm) in [("tensorflow", "horovod"), ("torch", "torch_ddp")]
    assert (ranks[0]["exchange_s"][0] == 0) == overlapping
    version = {"mpi4py": "mpi=", "horovod": "horovod=0.28", "torch_ddp": "ddp_backend=gloo"}[comm]
    assert version in " ".join(ranks[0]["versions"])


@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_without_an_exchange_they_do_not(tmp_path, whole, framework):
    """The tests above can fail: ranks that exchange nothing differ from each other and from the whole."""
    ranks = launch(2, tmp_path / "two", framework, "none", 8)
    assert distance(ranks[0], ranks[1]) > 100 * TOLERANCE
    assert distance(ranks[0], whole[framework]) > 100 * TOLERANCE


@needs_horovod
def test_horovod_beside_xla(tmp_path, whole):
    """XLA has no kernel for Horovod's operations: what it compiles is the rest of the step."""
    ranks = launch(2, tmp_path / "two", "tensorflow", "horovod", 8, "compile")
    assert distance(ranks[0], ranks[1]) == 0
    assert distance(ranks[0], whole["tensorflow"]) < TOLERANCE


@pytest.mark.parametrize("comm", [pytest.param("horovod", marks=needs_horovod), "torch_ddp", "mpi4py"])
def test_a_rank_that_gives_up_ends_the_others(tmp_path, comm):
    """Which would otherwise wait in an exchange for ever."""
    assert start(2, tmp_path / "two", "torch", comm, 8, "abort").returncode == 7
