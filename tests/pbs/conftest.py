"""A fake PBS site for each test that asks, and the transcripts of the real one."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sites.pbs.site import FakePbs
from sites.pbs.site import fake_pbs as running_pbs

TRANSCRIPTS = Path(__file__).parents[1] / "transcripts" / "openpbs.jsonl"


@pytest.fixture
def fake_pbs(request: pytest.FixtureRequest) -> Iterator[FakePbs]:
    """A site of two nodes with 16 cores and 4 GPUs each, empty. Its settings may be an indirect parameter."""
    with running_pbs(**getattr(request, "param", {})) as site:
        yield site
        log = site.log()
    assert not log, f"the fake itself failed:\n{log}"


@pytest.fixture(scope="session")
def transcripts() -> dict[str, dict[str, Any]]:
    """Name → transcript; stdout of raw bytes is decoded with surrogate escapes."""
    found = {}
    for line in TRANSCRIPTS.read_text().splitlines():
        record = json.loads(line)
        if "stdout_b64" in record:
            record["stdout"] = base64.b64decode(record["stdout_b64"]).decode("utf-8", "surrogateescape")
        found[record["name"]] = record
    return found
