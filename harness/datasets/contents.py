"""Reading whole files together with their checksums, in one pass over the storage."""

from __future__ import annotations

from pathlib import Path

from harness.catalog import DATASETS
from harness.datasets import published
from harness.datasets.manifest import Digest
from harness.errors import UserError


def locate(path: Path, form: str) -> tuple[str, ...]:
    """The files (relative to ``path``) of the set there.

    Raises:
        UserError: no layout of ``form`` is wholly there.
    """
    names = published.find_layout(path, form)
    if names is None:
        wanted = ", ".join(published.LAYOUTS[form][0])
        origin = next(origin for origin in DATASETS[form].origins if origin != "real")
        raise UserError(
            f"{path}: no {form} data set there (looked for {wanted}); "
            f"make one with: harness data make {form} --origin {origin}, or see: harness data describe {form}"
        )
    return names


def read_all(path: Path, names: tuple[str, ...]) -> tuple[dict[str, bytes], dict[str, Digest]]:
    """Content and checksums of each file.

    Raises:
        UserError: a file cannot be read.
    """
    contents, digests = {}, {}
    for name in names:
        try:
            contents[name] = (path / name).read_bytes()
        except OSError as error:
            raise UserError(f"{path / name}: cannot be read: {error.strerror}") from None
        digests[name] = Digest(contents[name])
    return contents, digests


def check_labels(labels: int, images: int, highest: int, classes: int, file: str) -> None:
    """Refuse labels that do not belong to the images."""
    if labels != images:
        raise UserError(f"{file}: {labels} labels for {images} images; make or fetch the set again")
    if highest >= classes:
        raise UserError(f"{file}: label {highest} where the format has {classes} classes (0 to {classes - 1})")
