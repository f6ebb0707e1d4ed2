"""Beginning, finishing and dropping a set's directory: at every moment it says whether it is whole."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from harness.datasets.manifest import (
    LISTING,
    MADE_BY,
    MANIFEST,
    PARTIAL,
    Conversion,
    Manifest,
    Request,
    file_facts,
    read_listing,
    read_manifest,
)
from harness.datasets.parts import JOURNAL, Produced, forget_journal
from harness.errors import UserError
from harness.files import read_json_lines, write_atomically


def begin(path: Path, request: Request) -> None:
    """Mark ``path`` as being made, or go on with what was begun there by an equal request.

    Raises:
        UserError: the directory holds something else.
    """
    if (path / MANIFEST).exists():
        raise UserError(f"{path}: already holds {read_manifest(path).request.name}; give another --to, or --force")
    text = _request_text(request)
    strangers = sorted(p.name for p in path.iterdir()) if path.is_dir() else []
    if PARTIAL in strangers and (path / PARTIAL).read_text(encoding="utf-8") != text:
        raise UserError(f"{path}: holds an unfinished set of another request; give another --to, or --force to drop it")
    if strangers and PARTIAL not in strangers:
        raise UserError(
            f"{path}: holds files that this program did not make ({', '.join(strangers[:3])}…); give another --to"
        )
    write_atomically(path / PARTIAL, text)


def drop(path: Path, request: Request) -> None:
    """Remove a made or half-made set so that ``request`` can be made there, for ``--force``.

    A damaged manifest names no files: those of equal names are then replaced by ``request``'s, others stay.

    Raises:
        UserError: the set is real, and so not for us to remove.
    """
    if not (path / MANIFEST).exists() and not (path / PARTIAL).exists():
        return
    files: list[str] | None = []
    if (path / MANIFEST).exists():
        files = _files_to_drop(path)
        (path / MANIFEST).replace(path / PARTIAL)
    if files is None:
        write_atomically(path / PARTIAL, _request_text(request))
        return
    files += [str(name) for record in read_json_lines(path / JOURNAL) for name, *_ in record.get("files", [])]
    for name in [*files, LISTING, JOURNAL, PARTIAL]:
        (path / name).unlink(missing_ok=True)
    _remove_empty(path)


def _files_to_drop(path: Path) -> list[str] | None:
    """The files of a made set; None where its manifest is damaged."""
    try:
        manifest = read_manifest(path)
    except UserError:
        return None
    if manifest.request.origin == "real" and manifest.conversion is None:
        raise UserError(f"{path}: holds the real {manifest.request.format}; remove it yourself, or give another --to")
    listed = [file.file for file in read_listing(path)] if LISTING in manifest.files else []
    return [*manifest.files, *listed]


def _request_text(request: Request) -> str:
    return request.model_dump_json(indent=2) + "\n"


def _remove_empty(path: Path) -> None:
    for folder, _, _ in os.walk(path, topdown=False):
        with suppress(OSError):
            if Path(folder) != path:
                Path(folder).rmdir()


def finish(path: Path, request: Request, files: list[str], made_with: dict[str, str]) -> Manifest:
    """Checksum the files (relative to ``path``) and write the manifest; the set is whole from here on."""
    facts = {name: file_facts(path / name) for name in sorted(files)}
    total = sum(fact.bytes for fact in facts.values())
    manifest = Manifest(
        request=request,
        made_by=MADE_BY,
        made_with=made_with,
        total_files=len(facts),
        total_bytes=total,
        files=facts,
    )
    write_manifest(path, manifest)
    return manifest


def finish_listed(
    path: Path,
    request: Request,
    files: list[Produced],
    made_with: dict[str, str],
    conversion: Conversion | None = None,
) -> Manifest:
    """Like :func:`finish` for many files whose checksums are known already: they go into the listing."""
    write_atomically(path / LISTING, "".join(f"{f.md5}\t{f.bytes}\t{f.file}\n" for f in sorted(files)))
    manifest = Manifest(
        request=request,
        made_by=MADE_BY,
        made_with=made_with,
        total_files=len(files),
        total_bytes=sum(file.bytes for file in files),
        files={LISTING: file_facts(path / LISTING)},
        conversion=conversion,
    )
    write_manifest(path, manifest)
    return manifest


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write the manifest and take away what marked the set as unfinished."""
    write_atomically(path / MANIFEST, manifest.model_dump_json(indent=2) + "\n")
    (path / PARTIAL).unlink(missing_ok=True)
    forget_journal(path)
