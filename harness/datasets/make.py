"""Making a data set in its true on-disk format; see :mod:`harness.datasets.origins` for where the images come from."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

from harness.catalog import DATASETS, lookup
from harness.datasets import manifest
from harness.datasets.dataset import Split
from harness.datasets.manifest import MANIFEST, Manifest, Request
from harness.errors import UserError, nearest

LAYOUTS = ("python", "binary")
_LIBRARIES = ("numpy", "pillow", "scikit-learn", "scikit-image")


def is_made(path: Path, request: Request) -> Manifest | None:
    """The manifest of a whole set in ``path`` that answers ``request``, its files there with their sizes."""
    if not (path / MANIFEST).exists() or manifest.missing(path, request.name):
        return None
    found = manifest.read_manifest(path)
    return found if found.request == request else None


def make(path: Path, request: Request, force: bool = False) -> Manifest:
    """Make the set of ``request`` in directory ``path``; a whole set of an equal request there is left alone.

    Raises:
        UserError: ``path`` holds something else (``force`` replaces a made set, never files of others),
            or what the origin needs is not installed.
    """
    if not force and (found := is_made(path, request)):
        return found
    _check(request)
    if force and (path / MANIFEST).exists():
        _unmake(path)
    manifest.begin(path, request)
    try:
        splits = _images(request)
        files = _write(path, request, *splits)
        return manifest.finish(path, request, files, library_versions())
    except OSError as error:
        raise UserError(f"{error.filename or path}: cannot write the data set: {error.strerror}") from None


def library_versions() -> dict[str, str]:
    """What made the images: another version may round a pixel differently."""
    versions = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _check(request: Request) -> None:
    spec = lookup(DATASETS, request.format, "data set format")
    made = [origin for origin in spec.origins if origin != "real"]
    if request.origin not in made:
        raise UserError(f"cannot make {request.format} of origin {request.origin!r}; {nearest(request.origin, made)}")
    for split, count in request.counts.items():
        if count < spec.classes:
            raise UserError(f"--{split} {count}: at least one sample of each of the {spec.classes} classes is needed")


def _unmake(path: Path) -> None:
    """Turn a made set into a half-made one: its manifest becomes the mark of an unfinished set."""
    try:
        files = list(manifest.read_manifest(path).files)
    except UserError:
        files = []  # a damaged manifest names no files; those of equal names are replaced, others stay
    (path / MANIFEST).replace(path / manifest.PARTIAL)
    for name in files:
        (path / name).unlink(missing_ok=True)


def _images(request: Request) -> tuple[Split, Split]:
    seed, train, test = request.seed, request.counts["train"], request.counts["test"]
    if request.origin == "digits":
        from harness.datasets.origins import digits

        return digits.make(seed, train, test)
    if request.origin == "photos":
        from harness.datasets.origins import photos

        return photos.make(seed, train, test)
    from harness.datasets.origins import synthetic

    return synthetic.make(seed, train, test, DATASETS[request.format].sample_shape)


def _write(path: Path, request: Request, train: Split, test: Split) -> list[str]:
    if request.format == "mnist":
        from harness.datasets import mnist

        return mnist.write(path, train, test)
    from harness.datasets import cifar10

    return cifar10.write(path, train, test, str(request.options["layout"]), label_names(request))


def label_names(request: Request) -> tuple[str, ...]:
    if request.origin == "photos":
        from harness.datasets.origins.photos import LABEL_NAMES

        return LABEL_NAMES
    return tuple(f"pattern{number}" for number in range(DATASETS[request.format].classes))
