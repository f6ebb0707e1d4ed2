"""Fixtures of the data set tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from datasets_support import request_of

from harness.datasets.make import make


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """``made(name, **options)``: a fresh small set under a name that no shell would like, as its directory."""

    def build(name: str, **options: str) -> Path:
        path = tmp_path / ("-".join([name.replace(":", "-"), *options.values()]) + " ünd $(x)")
        make(path, request_of(name, **options))
        return path

    return build
