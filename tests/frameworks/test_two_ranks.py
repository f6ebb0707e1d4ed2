"""Two ranks under mpirun: equal parameters, and the same training as one process on the full batch."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frameworks import two_ranks_program
from runtime_support import ROOT, clean_environment

pytest.importorskip("tensorflow")
pytest.importorskip("torch")

pytestmark = [pytest.mark.framework, pytest.mark.mpi, pytest.mark.timeout(1500)]


class Results:
    """What both ranks left: ``results[rank, case]`` is a dict of arrays."""

    def __init__(self, framework: str, comm: str, directory: Path, *cases: str):
        self.framework = framework
        # within the backward pass or the step's graph the exchange's time is not separable, and said to be 0
        self.separable = (framework, comm) not in [("torch", "torch_ddp"), ("tensorflow", "horovod")]
        program = Path(two_ranks_program.__file__)
        command = ["mpirun", "-np", "2", "--map-by", "socket", "--bind-to", "none", sys.executable, str(program)]
        environment = clean_environment(PYTHONPATH=f"{ROOT}:{ROOT / 'tests'}")
        run = subprocess.run(
            [*command, framework, comm, str(directory), *cases],
            env=environment,
            capture_output=True,
            text=True,
            timeout=1400,
        )
        assert run.returncode == 0, run.stderr
        self._ranks = [dict(np.load(directory / f"rank{rank}.npz")) for rank in range(2)]

    def __getitem__(self, key: tuple[int, str]) -> dict[str, Any]:
        rank, case = key
        prefix = f"{case}/"
        return {n.removeprefix(prefix): v for n, v in self._ranks[rank].items() if n.startswith(prefix)}


EXCHANGES = [
    ("tensorflow", "mpi4py"),
    ("torch", "mpi4py"),
    ("tensorflow", "horovod"),
    ("torch", "horovod"),
    ("torch", "torch_ddp"),
]


@pytest.fixture(scope="module", params=EXCHANGES, ids="-".join)
def results(request, tmp_path_factory) -> Iterator[Results]:
    if request.param[1] == "horovod" and importlib.util.find_spec("horovod") is None:
        pytest.skip("needs `make horovod`")
    return Results(*request.param, tmp_path_factory.mktemp("ranks"), *two_ranks_program.CASES)


def test_two_ranks_train_as_one_process_on_the_full_batch(results):
    """ResNet20, batch normalisation in inference mode: 2 ranks × 8 samples give the parameters of 1 × 16."""
    whole = two_ranks_program.train(results.framework, "plain", 16)
    halves = [results[rank, "plain"] for rank in range(2)]
    np.testing.assert_allclose(np.mean([h["losses"] for h in halves], axis=0), whole["losses"], rtol=1e-3)
    # Adam moves a parameter by up to 1e-3 a step; where a gradient is nearly 0, rounding decides its sign
    differences = np.concatenate([np.abs(halves[0][n] - whole[n]).ravel() for n in whole if n.startswith("p")])
    assert np.mean(differences > 1e-4) < 0.01
    assert all(exchange_s == 0 for exchange_s in whole["exchange_s"])
    assert not np.allclose(halves[0]["losses"], halves[1]["losses"]), "the ranks must see different samples"


@pytest.mark.parametrize("case", two_ranks_program.CASES)
def test_parameters_stay_equal(results, case):
    """Normalisation, dropout, augmentation and latent vectors differ by rank; the parameters do not."""
    first, second = results[0, case], results[1, case]
    assert first["digest"] == second["digest"]
    assert not np.allclose(first["losses"], second["losses"])
    assert all((first["exchange_s"] > 0) == results.separable)
    assert all((second["exchange_s"] > 0) == results.separable)


@pytest.mark.parametrize("framework", ["tensorflow", "torch"])
def test_deep_networks_stay_equal(framework, tmp_path):
    """ResNet50, and DenseNet121 with several labels an image: equal parameters after different samples."""
    results = Results(framework, "mpi4py", tmp_path, *two_ranks_program.DEEP)
    for case in two_ranks_program.DEEP:
        first, second = results[0, case], results[1, case]
        assert first["digest"] == second["digest"], case
        assert not np.allclose(first["losses"], second["losses"]), case
        assert all(first["exchange_s"] > 0), case
