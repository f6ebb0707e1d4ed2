"""Fixtures of the framework tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest
from frameworks_support import Maker, prepare_feed

from harness.catalog import FRAMEWORKS
from harness.runtime.interfaces import Batch


@pytest.fixture(scope="session", autouse=True)
def engines() -> None:
    """Thread pools can be set only before a framework's first operation, which may be another test's."""
    for framework in FRAMEWORKS:
        if importlib.util.find_spec(framework):
            Maker().context("dcgan_mnist", framework)


@pytest.fixture
def maker() -> Maker:
    return Maker()


@pytest.fixture
def feed() -> Callable[..., Callable[[int], Batch]]:
    """``feed(context)`` gives a function from a batch's number to this rank's batch, as the pipelines make it."""
    return prepare_feed
