"""A set like ChestX-ray14: grey 1024×1024 PNGs, findings as frequent as the real ones, several images a patient."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from harness.datasets.chestxray14 import ENTRIES, FINDINGS, IMAGES, NO_FINDING, TEST_LIST, TRAIN_LIST
from harness.datasets.manifest import Request
from harness.datasets.parts import Produced, store
from harness.datasets.photographs import look_of, photograph, png_bytes
from harness.datasets.trees import TreeMaker, TreePart

SIDE = 1024
_PATIENT_IMAGES = 4  # 112,120 images of 30,805 patients
_ALL = 112_120
_WITH_FINDING = 0.462  # the others, 60,361 images, are labelled No Finding
_GRAIN = 0.8
_COLUMNS = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],"
)


def images(part: TreePart) -> list[Produced]:
    """Write the images of a part."""
    first = 0 if part.split == "train" else part.request.counts["train"]
    return [_image(part, first + index) for index in range(part.start, part.stop)]


def extras(root: Path, request: Request) -> list[Produced]:
    """The table of findings and the lists of the split."""
    train, total = request.counts["train"], sum(request.counts.values())
    stream = io.StringIO()
    stream.write(_COLUMNS + "\n")
    table = csv.writer(stream, lineterminator="\n")
    for index in range(total):
        patient, follow_up = divmod(index, _PATIENT_IMAGES)
        rng = np.random.default_rng([request.seed, 6, patient])
        facts = [int(rng.integers(5, 90)), str(rng.choice(["M", "F"])), str(rng.choice(["PA", "AP"], p=[0.6, 0.4]))]
        finding = "|".join(findings_of(request.seed, index)) or NO_FINDING
        table.writerow([file_name(index), finding, follow_up, patient + 1, *facts, 2500, 2048, 0.168, 0.168, ""])
    names = [file_name(index) + "\n" for index in range(total)]
    texts = {ENTRIES: stream.getvalue(), TRAIN_LIST: "".join(names[:train]), TEST_LIST: "".join(names[train:])}
    return [store(root, file, text.encode()) for file, text in texts.items()]


MAKER = TreeMaker(images, extras, mean_bytes=410_000)


def file_name(index: int) -> str:
    patient, follow_up = divmod(index, _PATIENT_IMAGES)
    return f"{patient + 1:08d}_{follow_up:03d}.png"


def findings_of(seed: int, index: int) -> list[str]:
    """The findings of an image: none for 54 % of them, else drawn by the real frequencies."""
    rng = np.random.default_rng([seed, 3, index])
    if rng.random() >= _WITH_FINDING:
        return []
    chances = np.array(list(FINDINGS.values())) / (_ALL * _WITH_FINDING) * 0.8  # some are drawn again, see below
    while not (found := rng.random(len(FINDINGS)) < chances).any():
        pass
    return [name for name, present in zip(FINDINGS, found, strict=True) if present]


def _image(part: TreePart, index: int) -> Produced:
    rng = np.random.default_rng([part.request.seed, 4, index])
    texture = photograph(look_of(int(rng.integers(10)), part.request.seed), SIDE // 4, SIDE // 4, rng)
    grey = texture.convert("L").resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    pixels = _chest(rng) + 0.12 * np.asarray(grey, np.float32) - 15
    for number, finding in enumerate(FINDINGS):
        if finding in findings_of(part.request.seed, index):
            pixels += _opacity(number, rng)
    pixels += _GRAIN * rng.standard_normal((SIDE, SIDE), np.float32)
    picture = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    return store(part.root, f"{IMAGES}/{file_name(index)}", png_bytes(picture))


def _axes() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    line = np.linspace(-1, 1, SIDE, dtype=np.float32)
    return line[None, :], line[:, None]


def _blob(x: float, y: float, wide: float, high: float) -> npt.NDArray[np.float32]:
    """A smooth ellipse, 1 in its middle."""
    columns, rows = _axes()
    blob: npt.NDArray[np.float32] = np.exp(-(((columns - x) / wide) ** 2) - ((rows - y) / high) ** 2)
    return blob


def _chest(rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Two dark lungs in a bright chest, with ribs."""
    columns, rows = _axes()
    lungs = sum(_blob(side + rng.normal(0, 0.04), rng.normal(-0.05, 0.05), 0.26, 0.55) for side in (-0.42, 0.42))
    ribs = 8 * np.sin((rows * rng.uniform(16, 20) + 3 * columns**2) * np.pi).astype(np.float32)
    chest: npt.NDArray[np.float32] = (170 - 120 * lungs + ribs * lungs - 40 * columns**2).astype(np.float32)
    return chest


def _opacity(number: int, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """What a finding looks like: a brighter or darker patch, its place and size by the finding."""
    style = np.random.default_rng([14, number])
    x, y = style.uniform(-0.6, 0.6, 2) + rng.normal(0, 0.03, 2)
    wide, high = style.uniform(0.08, 0.35, 2)
    strength = float(style.choice([-1, 1]) * style.uniform(30, 60))
    return strength * _blob(float(x), float(y), float(wide), float(high))
