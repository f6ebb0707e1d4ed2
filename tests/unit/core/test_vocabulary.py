"""Job names, states and the catalog: what the rest relies on."""

from __future__ import annotations

import importlib.util
import itertools
import re

import pytest

from harness import catalog
from harness.errors import CatalogError, ConfigError, Problem, nearest
from harness.model.job import JobState, advance, job_name


def test_job_names_are_legal_on_every_scheduler_and_unique() -> None:
    names = {
        job_name(campaign, f"{point:016x}", repeat, attempt)
        for campaign, point, repeat, attempt in itertools.product(("a", "b $(x)\n'"), range(500), (0, 1), (1, 2))
    }
    assert len(names) == 2 * 500 * 4
    assert all(re.fullmatch(r"h[0-9a-z]{8}r\d+a\d+", n) and len(n) <= 15 for n in names)


def test_a_late_observation_never_moves_a_job_back() -> None:
    for old, new in itertools.product(JobState, JobState):
        result = advance(old, new)
        assert result.rank >= old.rank
        if old.ended and old is not JobState.LOST:
            assert result is old
    assert advance(JobState.LOST, JobState.SUCCEEDED) is JobState.SUCCEEDED
    assert advance(JobState.LOST, JobState.RUNNING) is JobState.LOST


def test_every_reference_of_the_catalog_names_a_module_that_exists() -> None:
    tables = [catalog.ENGINES, catalog.COMMS, catalog.SCHEDULERS]
    references = [r for table in tables for r in table.values()]
    for spec in [*catalog.WORKLOADS.values(), *catalog.PIPELINES.values()]:
        references += spec.frameworks.values()
    references += [d.reader for d in catalog.DATASETS.values()]
    references += [w.recipe for w in catalog.WORKLOADS.values() if w.recipe]
    missing = [r for r in references if importlib.util.find_spec(r.partition(":")[0]) is None]
    assert not missing


def test_defaults_of_workloads_exist() -> None:
    for workload in catalog.WORKLOADS.values():
        assert workload.dataset is None or workload.dataset in catalog.DATASETS
        assert set(workload.pipelines) == set(workload.frameworks)
        for framework, pipeline in workload.pipelines.items():
            assert framework in catalog.PIPELINES[pipeline].frameworks


def test_unknown_names_get_the_nearest_and_all_valid_ones() -> None:
    with pytest.raises(CatalogError, match=r"unknown workload 'dcgan'; .*dcgan_mnist"):
        catalog.lookup(catalog.WORKLOADS, "dcgan", "workload")
    assert nearest("cpu_core", ["cpu_cores", "workers"]) == "did you mean 'cpu_cores'? valid: cpu_cores, workers"


@pytest.mark.parametrize(
    ("name", "directory"),
    [("mnist", "mnist"), ("synthetic:mnist", "synthetic-mnist"), ("photos:cifar10", "photos-cifar10")],
)
def test_dataset_directories(name: str, directory: str) -> None:
    assert catalog.dataset_directory(name) == directory


def test_a_configuration_error_lists_every_problem() -> None:
    error = ConfigError([Problem("a.yml", 3, "wrong", "valid: x"), Problem("a.yml", 0, "empty")])
    assert str(error) == "a.yml:3: wrong; valid: x\na.yml: empty"
    assert error.exit_code == 2
