"""Making a data set in its true on-disk format; see :mod:`harness.datasets.origins` for where the images come from."""

from __future__ import annotations

import platform
import shutil
from importlib import metadata
from pathlib import Path

from harness.catalog import DATASETS, load, lookup
from harness.datasets import lifecycle, manifest
from harness.datasets.dataset import Split
from harness.datasets.manifest import MANIFEST, Manifest, Request
from harness.datasets.parts import Progress, run_parts
from harness.datasets.published import COUNTS
from harness.datasets.trees import TreeMaker, cut
from harness.errors import UserError, nearest, of_the_system
from harness.units import format_bytes

LAYOUTS = ("python", "binary")
TREES = {
    "imagenet": "harness.datasets.trees.imagenet:MAKER",
    "caltech256": "harness.datasets.trees.caltech256:MAKER",
    "chestxray14": "harness.datasets.trees.chestxray14:MAKER",
}
#: format → samples made unless others are asked for: whole small sets, samples of the large ones
DEFAULT_COUNTS = COUNTS | {
    "imagenet": {"train": 6400, "test": 640},
    "caltech256": {"train": 3084},
    "chestxray14": {"train": 512, "test": 128},
}
DEFAULT_CLASSES = {"imagenet": 100}
_LIBRARIES = ("numpy", "pillow", "scikit-learn", "scikit-image")


def is_made(path: Path, request: Request) -> Manifest | None:
    """The manifest of a whole set in ``path`` that answers ``request``, its files there with their sizes."""
    encoding = str(request.options.get("encoding", "native"))
    if not (path / MANIFEST).exists() or manifest.missing(path, request.name, encoding):
        return None
    found = manifest.read_manifest(path)
    return found if found.request == request else None


def make(
    path: Path,
    request: Request,
    force: bool = False,
    workers: int = 1,
    progress: Progress = lambda done, total: None,
) -> Manifest:
    """Make the set of ``request`` in directory ``path``; a whole set of an equal request there is left alone.

    Trees of image files are made by ``workers`` processes and go on where an earlier call was interrupted.

    Raises:
        UserError: ``path`` holds something else (``force`` replaces a made set, never files of others),
            or what the origin needs is not installed.
    """
    if not force and (found := is_made(path, request)):
        return found
    _check(request)
    try:
        if force:
            lifecycle.drop(path, request)
        lifecycle.begin(path, request)
        if request.format in TREES:
            return _make_tree(path, request, workers, progress)
        splits = _images(request)
        files = _write(path, request, *splits)
        return lifecycle.finish(path, request, files, library_versions())
    except OSError as error:
        raise UserError(f"the data set cannot be written: {of_the_system(error, path)}") from None


def _make_tree(path: Path, request: Request, workers: int, progress: Progress) -> Manifest:
    maker: TreeMaker = load(TREES[request.format])
    _check_space(path, maker.mean_bytes * sum(request.counts.values()))
    outcome = run_parts(path, cut(path, request), maker.images, workers, progress)
    files = outcome.files + maker.extras(path, request)
    return lifecycle.finish_listed(path, request, files, library_versions())


def _check_space(path: Path, needed_bytes: int) -> None:
    """Refuse at once what would fill the disk after hours."""
    free = shutil.disk_usage(path).free
    if needed_bytes > free:
        raise UserError(
            f"{path}: the set needs about {format_bytes(needed_bytes)} and {format_bytes(free)} are free there; "
            "ask for fewer with --train and --test, or give another --to"
        )


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
    classes = int(request.options.get("classes", spec.classes))
    if not 1 <= classes <= spec.classes:
        raise UserError(f"--classes {classes}: {request.format} has 1 to {spec.classes}")
    for split, count in request.counts.items():
        if count < classes:
            raise UserError(f"--{split} {count}: at least one sample of each of the {classes} classes is needed")


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
