"""Fetching a published set into a directory: its files, unpacked where they are archives, and a manifest at the end."""

from __future__ import annotations

import shlex
import shutil
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

from harness.catalog import DATASETS
from harness.datasets import lifecycle, published
from harness.datasets.download import Progress, download
from harness.datasets.manifest import MANIFEST, PARTIAL, Manifest, Request, file_facts, missing, read_manifest
from harness.datasets.parts import Produced
from harness.errors import UserError, of_the_system
from harness.model.download import Download

_UNPACKING = ".harness-unpacking"


def is_fetched(path: Path, form: str) -> Manifest | None:
    """The manifest of a real set that was fetched into ``path``, its files there with their sizes."""
    if not (path / MANIFEST).exists() or missing(path, form):
        return None
    return read_manifest(path)


def fetch(
    path: Path,
    form: str,
    source: Download,
    progress: Progress = lambda done, total: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Manifest:
    """Fetch the published set ``form`` into ``path``; after an interruption the same call goes on where it stopped.

    Raises:
        UserError: no mirror gives it, the directory holds something else, or an archive cannot be unpacked.
    """
    if found := is_fetched(path, form):
        return found
    if not (path / MANIFEST).exists() and not (path / PARTIAL).exists() and published.find_layout(path, form):
        check = f"harness data verify {shlex.quote(str(path))}"
        raise UserError(f"{path}: holds a {form} already, not fetched by this program; check it: {check}")
    request = Request(format=form, origin="real", counts=published.COUNTS[form])
    lifecycle.begin(path, request)
    try:
        archives = []
        for remote in source.files:
            file = download(remote, path, progress, sleep)
            if remote.unpack:
                archives.append(file)
        for archive in archives:
            _unpack(archive, path)
        manifest = _finish(path, request, [archive.name for archive in archives])
        for archive in archives:
            archive.unlink()
        return manifest
    except OSError as error:
        raise UserError(f"the data set cannot be written: {of_the_system(error, path)}") from None


def _unpack(archive: Path, path: Path) -> None:
    """Unpack beside the set and move the result in, so that what stands there is whole."""
    folder = path / _UNPACKING
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise UserError(f"{archive}: cannot be unpacked: {error}") from None
    for entry in sorted(folder.iterdir()):
        shutil.rmtree(path / entry.name, ignore_errors=True)
        entry.replace(path / entry.name)
    folder.rmdir()


def _finish(path: Path, request: Request, archives: list[str]) -> Manifest:
    if published.find_layout(path, request.format) is None:
        raise UserError(f"{path}: what was fetched is no {request.format}; look into the mirrors' list")
    files = sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())
    own = [name for name in files if name not in archives and not Path(name).name.startswith("harness-dataset")]
    if DATASETS[request.format].in_memory:
        return lifecycle.finish(path, request, own, {})
    facts = [(name, file_facts(path / name)) for name in own]
    return lifecycle.finish_listed(path, request, [Produced(name, f.bytes, f.md5) for name, f in facts], {})
