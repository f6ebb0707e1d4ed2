"""The speed of a storage, measured and recorded once per campaign, by the first run that reads from it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from harness.files import json_line
from harness.runtime.storage_probe import Limits, probe_existing

#: A run is not to be held up: each of the three parts ends after this long.
PART_S = 1.0


def probe_once(data: Path, storage: str, record: Path) -> dict[str, Any] | None:
    """Read from ``data`` and write what was found to ``record``, unless another run has begun to.

    Returns:
        The fields of a ``storage`` event; None where the record exists or nothing could be read.
    """
    try:
        handle = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except OSError:  # another run has, or the directory cannot be written: the measurement itself goes on
        return None
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        try:
            found = probe_existing(data, Limits(part_s=PART_S))
        except OSError as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        node = os.uname().nodename
        facts = {"storage": storage, "node": node, "unix_s": time.time(), "path": str(data), **found}
        stream.write(json_line(facts))
    return facts
