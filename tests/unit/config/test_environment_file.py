"""environment.yml: what pip would bring, conda brings, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

tomllib = pytest.importorskip("tomllib")

PROJECT = Path(__file__).parents[3]
#: name on PyPI → name on conda-forge
NAMES = {"lmdb": "python-lmdb", "tensorflow-cpu": "tensorflow", "torch": "pytorch"}


def package(requirement: str) -> str:
    return re.split(r"[\s<>=!~;\[]", requirement, maxsplit=1)[0]


def test_every_package_of_every_extra_but_dev_is_there() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = [name for extra, names in project["optional-dependencies"].items() if extra != "dev" for name in names]
    wanted = {NAMES.get(name, name) for name in map(package, [*project["dependencies"], *extras])}
    environment = yaml.safe_load((PROJECT / "environment.yml").read_text())
    assert wanted <= set(map(package, environment["dependencies"]))
