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
from harness.datasets.parts import Produced
from harness.errors import UserError
from harness.model.axes import Frozen, Scalar

MANIFEST = "harness-dataset.json"
LISTING = "harness-files.tsv"
PARTIAL = "harness-dataset.partial.json"
MADE_BY = f"dl-batch-harness {harness.__version__}"
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


class Conversion(Frozen):
    """What a conversion cost, and how many samples each shard holds.

    ``work_s`` adds the seconds of all workers; ``wall_s`` is the elapsed time of the run that ended it, which for a
    resumed one is not the whole. ``skipped`` counts images that could not be decoded.
    """

    source: str
    source_bytes: int
    bytes: int
    samples: int
    skipped: int
    workers: int
    work_s: float
    wall_s: float
    resumed: bool
    shards: dict[str, int] = Field(default_factory=dict, description="shard → samples; empty for a tree of files")


class Manifest(Frozen):
    """A whole data set: the request, who made it, and its files relative to the manifest's directory.

    ``files`` holds every file, or for a tree of many only its listing (:data:`LISTING`), which holds the others;
    ``total_files`` and ``total_bytes`` count them all but the listing.
    """

    request: Request
    made_by: str
    made_with: dict[str, str] = Field(default_factory=dict)
    total_files: int
    total_bytes: int
    files: dict[str, FileFacts]
    conversion: Conversion | None = None


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


def read_listing(path: Path) -> Iterator[Produced]:
    """The files that a tree's listing names.

    Raises:
        UserError: the listing is damaged.
    """
    with (path / LISTING).open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            try:
                md5, size, file = line.rstrip("\n").split("\t")
                yield Produced(file, int(size), md5)
            except ValueError:
                raise UserError(f"{path / LISTING}:{number}: damaged; make the set again with --force") from None


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


def origin_of(path: Path) -> str:
    """The origin that the manifest in ``path`` states; ``unknown`` without a manifest."""
    return read_manifest(path).request.origin if (path / MANIFEST).exists() else "unknown"


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
    if manifest.conversion is not None:
        source, encoding = shlex.quote(manifest.conversion.source), request.options.get("encoding")
        return f"harness data convert {source} --encoding {encoding} --to {shlex.quote(str(path))} --force"
    if request.origin == "real":
        return f"remove it and fetch it again: harness data fetch {request.format} --to {shlex.quote(str(path))}"
    return f"make it again: {make_command(path, request.name)} --force"


def make_command(path: Path, name: str) -> str:
    """The command that makes data set ``name`` (``origin:format``) in ``path``."""
    origin, form = split_dataset(name)
    return f"harness data make {form} --origin {origin} --to {shlex.quote(str(path))}"


def missing(path: Path, name: str, encoding: str = "native") -> str | None:
    """Why data set ``name`` is not usable in directory ``path``, and the command that makes it; None: it is there.

    Cheap: names and sizes only, no checksums.
    """
    origin, form = split_dataset(name)
    spec = lookup(DATASETS, form, "data set format")
    if (path / MANIFEST).exists():
        return _missing_by_manifest(path, name, encoding)
    if origin not in spec.origins:
        valid = ", ".join(form if o == "real" else f"{o}:{form}" for o in spec.origins)
        return f"data set {name!r}: {form} has no origin {origin!r}; valid: {valid}"
    if encoding != "native":
        return f"{name} as {encoding} is not in {path}; make it: {_convert_command(path, name, encoding)}"
    if origin == "real":
        return None if published.find_layout(path, form) else _how_to_get(path, name)
    half = " (only a half-made one)" if (path / PARTIAL).exists() else ""
    return f"data set {name} is not in {path}{half}; make it: {make_command(path, name)}"


def _convert_command(path: Path, name: str, encoding: str) -> str:
    source = path.with_name(dataset_directory(name))
    return f"harness data convert {shlex.quote(str(source))} --encoding {encoding} --to {shlex.quote(str(path))}"


def _missing_by_manifest(path: Path, name: str, encoding: str) -> str | None:
    try:
        manifest = read_manifest(path)
    except UserError as error:
        return str(error)
    request = manifest.request
    stored = str(request.options.get("encoding", "native"))
    if stored != encoding:
        return f"{path} holds {request.name} as {stored}, not as {encoding}; {_convert_command(path, name, encoding)}"
    # what was converted from files that nothing vouches for passes as real here; results still say unknown
    if request.name not in (name, f"unknown:{name}"):
        return f"{path} holds {request.name}, not {name}; write that name in the sweep, or clear the directory"
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
        f"the real data set {name} is not in {path} (looked for {files}); see harness data describe {name}, "
        f"or write dataset: {made[0]} in the sweep after: {make_command(sibling, made[0])}"
    )
