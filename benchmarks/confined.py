"""Starting a measuring process on some cores, its thread pools sized before any framework is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.runtime import affinity

HERE = Path(__file__).parent
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "KERAS_BACKEND": "tensorflow"}


def start(script: str, arguments: Sequence[str], cpus: Sequence[int], **streams: Any) -> subprocess.Popen[str]:
    """``script`` of this directory in a Python of its own, confined to ``cpus`` with a thread for each."""
    environment = os.environ | affinity.thread_environment(len(cpus)) | _QUIET
    return subprocess.Popen(
        [sys.executable, str(HERE / script), *arguments],
        env=environment,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        **streams,
    )


def run(script: str, arguments: Sequence[str], cpus: Sequence[int]) -> None:
    """The same until its end.

    Raises:
        SystemExit: it failed; it has said why.
    """
    if code := start(script, arguments, cpus).wait():
        raise SystemExit(f"{script} ended with {code}; its message is above")
