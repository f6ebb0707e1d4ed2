from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from runtime_support import ROOT, clean_environment, spec_of

from harness.comm.none import build

SCRIPT = Path(__file__).with_name("mpi_exchange_ranks.py")


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_rank_gets_means_of_the_right_shape(ranks: int) -> None:
    command = ["mpirun", "-np", str(ranks), "--map-by", "socket:OVERSUBSCRIBE", sys.executable, str(SCRIPT)]
    environment = clean_environment()
    environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'tests'}"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = sorted(done.stdout.splitlines())
    assert said == [f"rank {rank} of {ranks} content" for rank in range(ranks)]


def test_without_an_exchange_a_rank_gets_what_it_gives() -> None:
    exchange = build(spec_of(), None, "cpu")  # type: ignore[arg-type]
    arrays = [object(), object()]
    assert exchange.average(arrays) == exchange.broadcast(arrays) == arrays
    assert exchange.gather_text("x") == ["x"]
    assert exchange.versions() == {}
