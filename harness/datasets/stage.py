"""Copying a whole set to another storage, such as a node's own disk: in parallel, checked, timed."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.datasets.manifest import LISTING, MANIFEST, PARTIAL, read_listing, read_manifest
from harness.datasets.parts import JOURNAL, Produced, Progress
from harness.errors import UserError, of_the_system
from harness.units import format_bytes

_BLOCK_BYTES = 1 << 20
_UNKNOWN = ""


@dataclass(frozen=True)
class Staged:
    """What was copied. ``verified``: every file matched the checksum in the manifest, as read from the source."""

    from_path: str
    to_path: str
    files: int
    bytes: int
    seconds: float
    verified: bool


def stage(source: Path, target: Path, streams: int = 8, progress: Progress = lambda done, total: None) -> Staged:
    """Copy the set in ``source`` to ``target`` with that many streams; its manifest goes last.

    Raises:
        UserError: no data set there, it is only half made, a file differs from its checksum, or the disk is full.
    """
    started_s = time.monotonic()
    if not source.is_dir():
        raise UserError(f"{source}: no directory to stage from")
    if (source / PARTIAL).exists():
        raise UserError(f"{source}: holds a set that is only half made; complete it first")
    files = list(_files(source))
    total_bytes = sum(file.bytes for file in files)
    try:
        target.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(target).free
        if total_bytes > free:
            raise UserError(f"{target}: {format_bytes(free)} free, {format_bytes(total_bytes)} needed")
        (target / MANIFEST).unlink(missing_ok=True)
        with ThreadPoolExecutor(streams) as pool:
            for done, _ in enumerate(pool.map(partial(_copy, source, target), files), 1):
                progress(done, len(files))
        if (source / MANIFEST).exists():
            _copy(source, target, Produced(MANIFEST, (source / MANIFEST).stat().st_size, _UNKNOWN))
    except OSError as error:
        raise UserError(f"the set cannot be staged: {of_the_system(error, target)}") from None
    verified = bool(files) and all(file.md5 for file in files)
    return Staged(str(source), str(target), len(files), total_bytes, time.monotonic() - started_s, verified)


def _files(source: Path) -> Iterator[Produced]:
    """The files of the set with their checksums; without a manifest all files there are, with none."""
    if (source / MANIFEST).exists():
        manifest = read_manifest(source)
        yield from (Produced(name, facts.bytes, facts.md5) for name, facts in manifest.files.items())
        if LISTING in manifest.files:
            yield from read_listing(source)
        return
    for folder, _, names in os.walk(source):
        for name in sorted(names):
            path = Path(folder, name)
            if name not in (JOURNAL, PARTIAL) and path.is_file():
                yield Produced(str(path.relative_to(source)), path.stat().st_size, _UNKNOWN)


def _copy(source: Path, target: Path, file: Produced) -> None:
    """Copy one file, reckoning its checksum on the way, so that the shared storage is read once."""
    to = target / file.file
    to.parent.mkdir(parents=True, exist_ok=True)
    temporary = to.with_name(f".{to.name}.part")
    md5 = hashlib.md5(usedforsecurity=False)
    with (source / file.file).open("rb") as reader, temporary.open("wb") as writer:
        while block := reader.read(_BLOCK_BYTES):
            md5.update(block)
            writer.write(block)
    if temporary.stat().st_size != file.bytes or (file.md5 and md5.hexdigest() != file.md5):
        temporary.unlink()
        raise UserError(f"{source / file.file}: differs from its checksum in {MANIFEST}; see: harness data verify")
    temporary.replace(to)
