"""The generated JSON Schemas: they take what is shipped, and refuse what an author easily gets wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from harness.cli.schema import schema as schema_command
from harness.config.schema import cluster_schema, sweep_schema

PROJECT = Path(__file__).parents[3]
SWEEPS = sorted((PROJECT / "configs" / "sweeps").glob("*.yml"))
CLUSTERS = sorted((PROJECT / "configs" / "clusters").glob("*.yml"))


def errors(schema: dict[str, Any], text: str) -> list[str]:
    validator = jsonschema.Draft202012Validator(schema)
    return [error.message for error in validator.iter_errors(yaml.safe_load(text))]


def test_the_schemas_are_schemas() -> None:
    validator = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    for schema in (sweep_schema(), cluster_schema()):
        assert list(validator.iter_errors(schema)) == []


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_shipped_sweeps_conform(path: Path) -> None:
    assert errors(sweep_schema(), path.read_text()) == []


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.stem)
def test_shipped_clusters_conform(path: Path) -> None:
    assert errors(cluster_schema(), path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "name: x\nmatrix: {cpu_core: [1]}\n",
        "name: x\nmatrix: {cpu_cores: 1}\n",
        "name: x\nmatrix: {cpu_cores: []}\n",
        "name: x\nbase: {cpu_cores: 0}\n",
        "name: x\nbase: {workload: dcgan}\n",
        "name: x\nbase: {options: {produce: 1}}\n",
        "name: x\nwalltime: 12:00:00\n",
        "name: x\nwalltime_s: 3\n",
        "name: x\nmemory: 3\n",
        "name: x\nfile: y\n",
        "name: x\nwhen: [{set: {workers: 1}}]\n",
        "name: x\nsteps: {warmup: some}\n",
        "repeats: 3\n",
    ],
)
def test_wrong_sweeps_are_refused(text: str) -> None:
    assert errors(sweep_schema(), text)


@pytest.mark.parametrize(
    "text",
    [
        "name: x\nmatrix: {cpu_cores: [1], options.produce_s: [0.1]}\nsteps: {warmup: auto}\nwalltime: '01:00:00'\n",
        "name: x\nzip: {nodes: [1]}\nexclude: [{workers: 1}, {where: 'workers > 1'}, {where: {workers: 1}}]\n",
        "name: x\nparts: [{base: {options: {produce_script: [1, 2]}}}]\nmemory: 1.5gb\nderive: {cpu_cores: 4}\n",
    ],
)
def test_right_sweeps_are_taken(text: str) -> None:
    assert errors(sweep_schema(), text) == []


def test_clusters_in_human_units() -> None:
    good = "name: x\nscheduler: local\nnode: auto\nstorage: {s: {path: /s}}\nqueues: {q: {max_walltime: 1h}}\n"
    assert errors(cluster_schema(), good) == []
    assert errors(cluster_schema(), good.replace("max_walltime: 1h", "max_walltime: 3600"))
    assert errors(cluster_schema(), good.replace("max_walltime", "max_walltime_s"))
    assert errors(cluster_schema(), good.replace("local", "locl"))


@pytest.mark.parametrize("kind", ["sweep", "cluster"])
def test_the_verb_prints_it(kind: str) -> None:
    result = CliRunner().invoke(schema_command, [kind])
    assert result.exit_code == 0
    assert yaml.safe_load(result.output) == (sweep_schema() if kind == "sweep" else cluster_schema())
