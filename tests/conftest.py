"""Tests send SIGINT to what they start; a process that ignores it (a background job of a shell) would pass that on."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from sites.gate import Gate

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Ranks of a cluster whose ``python`` is its ``interpreter`` wait until it is opened."""
    return Gate(tmp_path / "gate")
