"""Running a conversion: parallel, journaled, checksummed, timed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.catalog import ENCODINGS, load
from harness.datasets import lifecycle
from harness.datasets.convert.samples import Sample, Source, cut_by_size, open_source
from harness.datasets.convert.shard import Shard
from harness.datasets.make import is_made, library_versions
from harness.datasets.manifest import Conversion, Manifest, Request
from harness.datasets.parts import JOURNAL, Produced, Progress, run_parts
from harness.errors import UserError, nearest, of_the_system

WRITERS = {
    "tfrecord": "harness.datasets.convert.tfrecord:write_encoded",
    "tfrecord_decoded": "harness.datasets.convert.tfrecord:write_decoded",
    "lmdb": "harness.datasets.convert.lmdb_shards:write",
    "npy": "harness.datasets.convert.npy:write",
    "webdataset": "harness.datasets.convert.webdataset:write",
    "jpeg": "harness.datasets.convert.jpeg:write",
}
DECODED = ("tfrecord_decoded", "npy", "jpeg")
DEFAULT_SIDE = 256
DEFAULT_SHARD_BYTES = 128 << 20
DEFAULT_QUALITY = 95
_TREE_PART_IMAGES = 256


@dataclass(frozen=True)
class Settings:
    """How to convert.

    ``side`` None: 256 for images of various sizes, their own for sets held in memory. ``shard_samples`` cuts by
    number instead of size.
    """

    encoding: str
    side: int | None = None
    quality: int = DEFAULT_QUALITY
    shard_bytes: int = DEFAULT_SHARD_BYTES
    shard_samples: int | None = None
    seed: int = 0
    skip_corrupt: bool = False


def convert(
    source_path: Path,
    path: Path,
    settings: Settings,
    workers: int = 1,
    progress: Progress = lambda done, total: None,
    force: bool = False,
) -> Manifest:
    """Convert the set in ``source_path`` into ``path``; an equal conversion that is there is left alone.

    The training samples are shuffled by the seed, so that a shard holds a mixture of classes.

    Raises:
        UserError: unknown encoding, no source, something else in ``path``, a library is missing, or an image that
            cannot be decoded (unless ``skip_corrupt``).
    """
    writer = _writer(settings.encoding)
    source = open_source(source_path)
    request = _request(source, settings)
    if not force and (found := is_made(path, request)):
        return found
    try:
        if force:
            lifecycle.drop(path, request)
        lifecycle.begin(path, request)
        return _convert(source, source_path, path, request, writer, workers, progress)
    except OSError as error:
        raise UserError(f"the converted set cannot be written: {of_the_system(error, path)}") from None


def _convert(
    source: Source,
    source_path: Path,
    path: Path,
    request: Request,
    writer: Callable[[Shard], list[Produced]],
    workers: int,
    progress: Progress,
) -> Manifest:
    started_s, resumed = time.monotonic(), (path / JOURNAL).exists()
    shards = [shard for split in source.samples for shard in _shards(path, split, source.samples[split], request)]
    outcome = run_parts(path, shards, writer, workers, progress)
    files = list(outcome.files)
    if request.options["encoding"] == "jpeg":
        from harness.datasets.convert import jpeg

        files.append(jpeg.table(path, source.samples, {file.file for file in files}))
    total = sum(len(samples) for samples in source.samples.values())
    written = sum(file.samples for file in files)
    conversion = Conversion(
        source=str(source_path),
        source_bytes=sum(sample.stored_bytes for samples in source.samples.values() for sample in samples),
        bytes=sum(file.bytes for file in files),
        samples=written,
        skipped=total - written,
        workers=workers,
        work_s=outcome.work_s,
        wall_s=time.monotonic() - started_s,
        resumed=resumed,
        shards={} if request.options["encoding"] == "jpeg" else {f.file: f.samples for f in files if f.samples},
    )
    return lifecycle.finish_listed(path, request, files, library_versions(), conversion)


def _writer(encoding: str) -> Callable[[Shard], list[Produced]]:
    if encoding not in WRITERS:
        raise UserError(f"unknown encoding {encoding!r}; {nearest(encoding, [e for e in ENCODINGS if e in WRITERS])}")
    try:
        writer: Callable[[Shard], list[Produced]] = load(WRITERS[encoding])
    except ImportError as error:
        raise UserError(
            f"encoding {encoding} needs the package {error.name}; install it: pip install -e '.[formats]'"
        ) from None
    return writer


def _request(source: Source, settings: Settings) -> Request:
    options: dict[str, bool | int | float | str] = {"encoding": settings.encoding}
    if settings.encoding in DECODED:
        side = settings.side or (None if source.in_memory else DEFAULT_SIDE)
        shape = next(iter(source.samples.values()))[0].pixels(side).shape if source.in_memory else (side, side, 3)
        options |= dict(zip(("height", "width", "channels"), (int(n or 0) for n in shape), strict=True))
        options["resized"] = side is not None
    if settings.encoding == "jpeg":
        options["quality"] = settings.quality
    elif settings.shard_samples is not None:
        options["shard_samples"] = settings.shard_samples
    else:
        options["shard_bytes"] = settings.shard_bytes
    options["skip_corrupt"] = settings.skip_corrupt
    counts = {split: len(samples) for split, samples in source.samples.items()}
    return Request(format=source.form, origin=source.origin, seed=settings.seed, counts=counts, options=options)


def _shards(path: Path, split: str, samples: list[Sample], request: Request) -> list[Shard]:
    options = request.options
    if split == "train":
        order = np.random.default_rng([request.seed, 9]).permutation(len(samples))
        samples = [samples[i] for i in order]
    each = _TREE_PART_IMAGES if options["encoding"] == "jpeg" else int(options.get("shard_samples", 0))
    if each:
        cuts = [samples[i : i + each] for i in range(0, len(samples), each)]
    else:
        sizes = [int(options[name]) for name in ("height", "width", "channels") if name in options]
        cuts = cut_by_size(samples, int(options["shard_bytes"]), math.prod(sizes) if sizes else None)
    side = int(options["height"]) if options.get("resized") else None
    return [
        Shard(
            root=path,
            split=split,
            stem=f"{split}-{number:05d}-of-{len(cuts):05d}",
            samples=tuple(cut),
            side=side,
            quality=int(options.get("quality", DEFAULT_QUALITY)),
            skip_corrupt=bool(options["skip_corrupt"]),
        )
        for number, cut in enumerate(cuts)
    ]
