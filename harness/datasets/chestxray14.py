"""ChestX-ray14 (NIH): 1024×1024 grey PNGs, and ``Data_Entry_2017.csv`` with the findings separated by ``|``.

Source: X. Wang et al., "ChestX-ray8", CVPR 2017, and the README of the NIH's distribution: twelve archives that
unpack into ``images/``, split by patient in ``train_val_list.txt`` and ``test_list.txt``.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np

from harness.datasets.filesets import FileDataset, ImageFiles, assemble
from harness.errors import UserError

FORMAT = "chestxray14"
IMAGES = "images"
ENTRIES = "Data_Entry_2017.csv"
TRAIN_LIST = "train_val_list.txt"
TEST_LIST = "test_list.txt"
NO_FINDING = "No Finding"
#: finding → images with it among the 112,120 (table in the NIH's README), in the order of the CheXNet paper
FINDINGS = {
    "Atelectasis": 11559,
    "Cardiomegaly": 2776,
    "Effusion": 13317,
    "Infiltration": 19894,
    "Mass": 5782,
    "Nodule": 6331,
    "Pneumonia": 1431,
    "Pneumothorax": 5302,
    "Consolidation": 4667,
    "Edema": 2303,
    "Emphysema": 2516,
    "Fibrosis": 1686,
    "Pleural_Thickening": 3385,
    "Hernia": 227,
}


def read(path: Path) -> FileDataset:
    """The set in directory ``path``; labels are (n, 14) uint8 flags in the order of :data:`FINDINGS`.

    Raises:
        UserError: nothing there, or a table that cannot be understood.
    """
    if not (path / ENTRIES).is_file() or not (path / IMAGES).is_dir():
        raise UserError(
            f"{path}: no ChestX-ray14 there ({ENTRIES} or {IMAGES}/ is missing); see: harness data describe chestxray14"
        )
    flags = _flags(path / ENTRIES)
    present = {entry.name for entry in os.scandir(path / IMAGES)}
    skipped = tuple(sorted(f"{IMAGES}/{name}" for name in present if name not in flags))
    test_names = _listed(path / TEST_LIST)
    images = sorted(present & flags.keys())
    train = _split(path, [image for image in images if image not in test_names], flags)
    test = _split(path, [image for image in images if image in test_names], flags)
    return assemble(path, FORMAT, tuple(FINDINGS), train, test, skipped)


def _split(path: Path, names: list[str], flags: dict[str, list[int]]) -> ImageFiles:
    labels = np.array([flags[name] for name in names], np.uint8).reshape(len(names), len(FINDINGS))
    return ImageFiles(path, tuple(f"{IMAGES}/{name}" for name in names), labels)


def _flags(file: Path) -> dict[str, list[int]]:
    """Image → 14 flags, from the columns ``Image Index`` and ``Finding Labels``."""
    flags = {}
    with file.open(newline="", encoding="utf-8-sig") as stream:
        rows = csv.DictReader(stream)
        if not {"Image Index", "Finding Labels"} <= set(rows.fieldnames or ()):
            raise UserError(f"{file}:1: no columns 'Image Index' and 'Finding Labels'")
        for row in rows:
            words = (row["Finding Labels"] or "").split("|")
            unknown = [word for word in words if word not in FINDINGS and word != NO_FINDING]
            if unknown:
                raise UserError(f"{file}:{rows.line_num}: unknown finding {unknown[0]!r}; valid: {', '.join(FINDINGS)}")
            flags[row["Image Index"]] = [int(finding in words) for finding in FINDINGS]
    return flags


def _listed(file: Path) -> frozenset[str]:
    return frozenset(file.read_text().split()) if file.exists() else frozenset()
