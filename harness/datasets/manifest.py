"""``harness-dataset.json``: what a data set is, written last, so that a half-made set is never taken for whole.

Nothing here needs numpy: the login side asks :func:`missing` before it submits.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from pydantic import Field, ValidationError

import harness
from harness.catalog import DATASETS, dataset_directory, lookup, split_dataset
from harness.datasets import published
from harness.errors import UserError
from harness.files import write_atomically
from harness.model.axes import Frozen, Scalar

MANIFEST = "harness-dataset.json"
PARTIAL = "harness-dataset.partial.json"
_BLOCK_BYTES = 1 << 20


class FileFacts(Frozen):
    """Size and checksums of one file."""

    bytes: int
    md5: str
    sha256: str


class Request(Frozen):
    """What was asked for: two equal requests make byte-identical sets (with equal library versions)."""

    format: str
    origin: str
    seed: int = 0
    counts: dict[str, int] = Field(default_factory=dict)
    options: dict[str, Scalar] = Field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.format if self.origin == "real" else f"{self.origin}:{self.format}"


class Manifest(Frozen):
    """A whole data set: the request, who made it, and every file relative to the manifest's directory."""

    request: Request
    made_by: str
    made_with: dict[str, str] = Field(default_factory=dict)
    files: dict[str, FileFacts]

    @property
    def bytes(self) -> int:
        return sum(facts.bytes for facts in self.files.values())


class Digest:
    """Checksums of some bytes, as hex, each reckoned when asked for: at 0.5 GB/s they cost as much as reading."""

    def __init__(self, content: bytes):
        self._content = content

    @cached_property
    def md5(self) -> str:
        return hashlib.md5(self._content, usedforsecurity=False).hexdigest()

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self._content).hexdigest()


def file_facts(path: Path) -> FileFacts:
    """Size and checksums of a file, read block by block."""
    md5, sha256, size = hashlib.md5(usedforsecurity=False), hashlib.sha256(), 0
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            md5.update(block)
            sha256.update(block)
            size += len(block)
    return FileFacts(bytes=size, md5=md5.hexdigest(), sha256=sha256.hexdigest())


def begin(path: Path, request: Request) -> None:
    """Mark ``path`` as being made; refuses a directory that holds something else than an unfinished set of ours."""
    if (path / MANIFEST).exists():
        raise UserError(f"{path}: already holds {read_manifest(path).request.name}; give another --to, or --force")
    strangers = sorted(p.name for p in path.iterdir()) if path.is_dir() else []
    if strangers and PARTIAL not in strangers:
        raise UserError(
            f"{path}: holds files that this program did not make ({', '.join(strangers[:3])}…); give another --to"
        )
    write_atomically(path / PARTIAL, request.model_dump_json(indent=2) + "\n")


def finish(path: Path, request: Request, files: list[str], made_with: dict[str, str]) -> Manifest:
    """Checksum the files (relative to ``path``) and write the manifest; the set is whole from here on."""
    facts = {name: file_facts(path / name) for name in sorted(files)}
    made_by = f"dl-batch-harness {harness.__version__}"
    manifest = Manifest(request=request, made_by=made_by, made_with=made_with, files=facts)
    write_atomically(path / MANIFEST, manifest.model_dump_json(indent=2) + "\n")
    (path / PARTIAL).unlink(missing_ok=True)
    return manifest


def read_manifest(path: Path) -> Manifest:
    """The manifest of the set in directory ``path``.

    Raises:
        UserError: there is none, or it cannot be read.
    """
    file = path / MANIFEST
    try:
        return Manifest.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path}: no {MANIFEST} there") from None
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UserError(f"{file}: damaged ({where}: {first['msg']}); make the set again with --force") from None


def provenance(path: Path, digests: dict[str, Digest]) -> tuple[str, bool]:
    """``(origin, verified)`` of files that were read, given their checksums by name relative to ``path``.

    Raises:
        UserError: a file differs from what the manifest says of it.
    """
    if all(_is_published(Path(name).name, digest) for name, digest in digests.items()):
        return "real", True
    if not (path / MANIFEST).exists():
        return "unknown", False
    manifest = read_manifest(path)
    for name, digest in digests.items():
        facts = manifest.files.get(name)
        if facts is None:
            return "unknown", False
        if facts.md5 != digest.md5:
            raise UserError(f"{path / name}: differs from its checksum in {MANIFEST}; {remake_hint(path, manifest)}")
    return manifest.request.origin, True


def _is_published(name: str, digest: Digest) -> bool:
    if name in published.MD5:
        return digest.md5 == published.MD5[name]
    return name in published.SHA256 and digest.sha256 == published.SHA256[name]


def remake_hint(path: Path, manifest: Manifest) -> str:
    request = manifest.request
    if request.origin == "real":
        return f"fetch it again: harness data fetch {request.format} --to {shlex.quote(str(path))} --force"
    return f"make it again: {make_command(path, request.name)} --force"


def make_command(path: Path, name: str) -> str:
    """The command that makes data set ``name`` (``origin:format``) in ``path``."""
    origin, form = split_dataset(name)
    return f"harness data make {form} --origin {origin} --to {shlex.quote(str(path))}"


def check_files(path: Path, manifest: Manifest) -> Iterator[tuple[str, str | None]]:
    """Each file of the set with what is wrong with it (None: it matches its checksum)."""
    for name, facts in manifest.files.items():
        file = path / name
        if not file.is_file():
            yield name, "missing"
        elif file.stat().st_size != facts.bytes:
            yield name, f"{file.stat().st_size} bytes instead of {facts.bytes}"
        else:
            yield name, None if file_facts(file).sha256 == facts.sha256 else "checksum differs"


def missing(path: Path, name: str) -> str | None:
    """Why data set ``name`` is not usable in directory ``path``, and the command that makes it; None: it is there.

    Cheap: names and sizes only, no checksums.
    """
    origin, form = split_dataset(name)
    spec = lookup(DATASETS, form, "data set format")
    if origin not in spec.origins:
        valid = ", ".join(form if o == "real" else f"{o}:{form}" for o in spec.origins)
        return f"data set {name!r}: {form} has no origin {origin!r}; valid: {valid}"
    if (path / MANIFEST).exists():
        return _missing_by_manifest(path, name)
    if origin == "real":
        return None if published.find_layout(path, form) else _how_to_get(path, name)
    half = " (only a half-made one)" if (path / PARTIAL).exists() else ""
    return f"data set {name} is not in {path}{half}; make it: {make_command(path, name)}"


def _missing_by_manifest(path: Path, name: str) -> str | None:
    try:
        manifest = read_manifest(path)
    except UserError as error:
        return str(error)
    if manifest.request.name != name:
        return f"{path} holds {manifest.request.name}, not {name}; write that name in the sweep, or clear the directory"
    for file, facts in manifest.files.items():
        entry = path / file
        if not entry.is_file() or entry.stat().st_size != facts.bytes:
            return f"data set {name} in {path}: {file} is missing or cut short; {remake_hint(path, manifest)}"
    return None


def _how_to_get(path: Path, name: str) -> str:
    files = ", ".join(published.LAYOUTS[name][0])
    made = [f"{origin}:{name}" for origin in DATASETS[name].origins if origin != "real"]
    sibling = path.parent / dataset_directory(made[0])
    return (
        f"the real data set {name} is not in {path} (looked for {files}); put it there, "
        f"or write dataset: {made[0]} in the sweep after: {make_command(sibling, made[0])}"
    )
