"""Small requests for data sets, shared by tests."""

from __future__ import annotations

from harness.datasets.manifest import Request

COUNTS = {"train": 203, "test": 41}


def request_of(name: str, **options: str) -> Request:
    """A small set of ``name`` (``origin:format``)."""
    origin, form = name.split(":")
    if form == "cifar10":
        options = {"layout": "python"} | options
    return Request(format=form, origin=origin, counts=COUNTS, options=dict(options))
