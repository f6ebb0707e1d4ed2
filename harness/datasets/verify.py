"""Checking a data set's files against the checksums of its manifest, or those published for the real one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.catalog import DATASETS
from harness.datasets import published
from harness.datasets.manifest import LISTING, MANIFEST, Manifest, file_facts, read_listing, read_manifest
from harness.datasets.parts import Produced
from harness.errors import UserError

OK, WRONG, UNKNOWN = "ok", "wrong", "unknown"
_STREAMS = 8


@dataclass(frozen=True)
class FileCheck:
    """One file's verdict: ok, wrong, or unknown where there is no checksum to compare with."""

    file: str
    verdict: str
    detail: str = ""


def verify(path: Path) -> tuple[str, Iterator[FileCheck]]:
    """The name of the set in directory ``path`` and, file by file as they are read, whether it is whole.

    Raises:
        UserError: no data set is there.
    """
    if (path / MANIFEST).exists():
        manifest = read_manifest(path)
        return manifest.request.name, _against_manifest(path, manifest)
    for form in DATASETS:
        if form in published.LAYOUTS and (names := published.find_layout(path, form)):
            return form, _against_published(path, names)
    raise UserError(f"{path}: no data set there: neither {MANIFEST} nor the files of {', '.join(published.LAYOUTS)}")


def _against_manifest(path: Path, manifest: Manifest) -> Iterator[FileCheck]:
    """Each file of the set, several read at a time."""
    expected = [Produced(name, facts.bytes, facts.md5) for name, facts in manifest.files.items()]
    if LISTING in manifest.files and (path / LISTING).is_file():
        expected += read_listing(path)
    with ThreadPoolExecutor(_STREAMS) as pool:
        wrongs = pool.map(partial(_what_is_wrong, path), expected)
        for file, wrong in zip(expected, wrongs, strict=True):
            yield FileCheck(file.file, WRONG if wrong else OK, wrong or "")


def _what_is_wrong(path: Path, expected: Produced) -> str | None:
    file = path / expected.file
    try:
        facts = file_facts(file)
    except OSError as error:
        return "missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
    if facts.bytes != expected.bytes:
        return f"{facts.bytes} bytes instead of {expected.bytes}"
    return None if facts.md5 == expected.md5 else "checksum differs"


def _against_published(path: Path, names: tuple[str, ...]) -> Iterator[FileCheck]:
    for name in names:
        base = Path(name).name
        if base not in published.MD5 and base not in published.SHA256:
            yield FileCheck(name, UNKNOWN, "no checksum is published for this file")
            continue
        facts = file_facts(path / name)
        same = facts.md5 == published.MD5.get(base) or facts.sha256 == published.SHA256.get(base)
        yield FileCheck(name, OK if same else WRONG, "" if same else "differs from the published checksum")
