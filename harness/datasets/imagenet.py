"""ImageNet ILSVRC2012 CLS-LOC: its directory tree, labels, and bounding boxes.

Layout: ``ILSVRC/Data/CLS-LOC/{train/nXXXXXXXX,val}/*.JPEG`` and ``ILSVRC/Annotations/CLS-LOC/…/*.xml``, as the
challenge's archive on Kaggle unpacks; its ``LOC_val_solution.csv`` labels the validation images.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from harness.datasets.filesets import FileDataset, ImageFiles, assemble, class_folders, scan_classes
from harness.errors import UserError

FORMAT = "imagenet"
DATA = "ILSVRC/Data/CLS-LOC"
ANNOTATIONS = "ILSVRC/Annotations/CLS-LOC"
VAL_LABELS = "LOC_val_solution.csv"
_SUFFIXES = (".jpeg",)


class Box(NamedTuple):
    """A bounding box as parts of the image's width and height, 0 to 1."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float


WHOLE_IMAGE = Box(0.0, 0.0, 1.0, 1.0)


def read(path: Path) -> FileDataset:
    """The tree in directory ``path``. A label is the class directory's place in sorted order.

    Raises:
        UserError: nothing there, or validation images without labels.
    """
    train_folder = path / DATA / "train"
    if not train_folder.is_dir():
        raise UserError(f"{path}: no ImageNet there ({DATA}/train is missing); see: harness data describe imagenet")
    classes = class_folders(train_folder)
    files, labels, skipped = scan_classes(path, f"{DATA}/train", classes, _SUFFIXES)
    if not files:
        raise UserError(f"{train_folder}: holds no .JPEG file; see: harness data describe imagenet")
    train = ImageFiles(path, files, labels)
    return assemble(path, FORMAT, classes, train, _validation(path, classes), skipped)


def annotation_of(file: str) -> str:
    """The annotation that belongs to an image, both relative to the set."""
    return file.replace(DATA, ANNOTATIONS, 1).removesuffix(".JPEG") + ".xml"


def boxes_of(root: Path, file: str) -> list[Box]:
    """The boxes of an image; the whole image where it has no annotation or an empty one.

    Coordinates are divided by size − 1, as the ALCF pipeline does, and kept within the image.

    Raises:
        UserError: the annotation cannot be understood.
    """
    annotation = root / annotation_of(file)
    try:
        tree = ElementTree.parse(annotation).getroot()
    except FileNotFoundError:
        return [WHOLE_IMAGE]
    except (ElementTree.ParseError, OSError) as error:
        raise UserError(f"{annotation}: cannot be read as an annotation: {error}") from None
    try:
        width, height = (max(int(_text(tree, f"size/{side}")) - 1, 1) for side in ("width", "height"))
        found = [_box(node, width, height) for node in tree.iterfind("object/bndbox")]
    except ValueError as error:
        raise UserError(f"{annotation}: not an ImageNet annotation: {error}") from None
    return found or [WHOLE_IMAGE]


def _text(node: ElementTree.Element, path: str) -> str:
    text = node.findtext(path)
    if text is None:
        raise ValueError(f"no <{path}>")
    return text


def _box(node: ElementTree.Element, width: int, height: int) -> Box:
    x1, x2 = (min(max(float(_text(node, name)) / width, 0.0), 1.0) for name in ("xmin", "xmax"))
    y1, y2 = (min(max(float(_text(node, name)) / height, 0.0), 1.0) for name in ("ymin", "ymax"))
    return Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))


def _validation(path: Path, classes: tuple[str, ...]) -> ImageFiles:
    folder = path / DATA / "val"
    names = sorted(e.name for e in os.scandir(folder) if e.name.lower().endswith(_SUFFIXES)) if folder.is_dir() else []
    by_stem = _solution(path / VAL_LABELS)
    number = {name: label for label, name in enumerate(classes)}
    labels = []
    for name in names:
        stem = name.rsplit(".", 1)[0]
        word = by_stem.get(stem) or _class_in_annotation(path, stem)
        if word not in number:
            raise UserError(
                f"{folder / name}: its class {word!r} is not among the training classes; put {VAL_LABELS} into {path}"
            )
        labels.append(number[word])
    return ImageFiles(path, tuple(f"{DATA}/val/{name}" for name in names), np.array(labels, np.int64))


def _solution(file: Path) -> dict[str, str]:
    """Image → class from ``ImageId,PredictionString``, whose first word is the class; empty without the file."""
    if not file.exists():
        return {}
    with file.open(newline="") as stream:
        rows = csv.DictReader(stream)
        return {row["ImageId"]: row["PredictionString"].split()[0] for row in rows if row.get("PredictionString")}


def _class_in_annotation(path: Path, stem: str) -> str | None:
    try:
        return ElementTree.parse(path / ANNOTATIONS / "val" / f"{stem}.xml").findtext("object/name")
    except (OSError, ElementTree.ParseError):
        return None
