"""A tree like ImageNet's: sizes, quality, boxes and oddities as in the real one, images from bundled photographs.

Aims (the real training set): mean 469×387 pixels with a heavy tail, most files at quality 96 without chroma
subsampling, 0.63 bytes per pixel, 114,660 bytes; 42.5 % annotated with 1.13 boxes each; class sizes 732–1,300;
one PNG that is named .JPEG, 22 CMYK files among 1,281,167.
"""

from __future__ import annotations

import bisect
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
from PIL import Image

from harness.datasets.imagenet import ANNOTATIONS, DATA, VAL_LABELS
from harness.datasets.manifest import Request
from harness.datasets.parts import Produced, store
from harness.datasets.photographs import jpeg_bytes, look_of, photograph, png_bytes
from harness.datasets.trees import TreeMaker, TreePart, spread

ANNOTATED = 0.425
EXTRA_BOXES = 0.13
GREY = 0.015
_CMYK_EVERY = 58_235  # 22 of 1,281,167
_LARGEST = 4288  # pixels; the widest real images have about as many


def images(part: TreePart) -> list[Produced]:
    """Write the images of a part, with their annotations."""
    produced = []
    for index in range(part.start, part.stop):
        produced += _image(part, index)
    return produced


def extras(root: Path, request: Request) -> list[Produced]:
    """The classes' names, the list of files, and the validation images' classes."""
    options, val = request.options, request.counts["test"]
    names = [class_name(number) for number in range(int(options["classes"]))]
    mapping = "".join(f"{name} pattern {number}\n" for number, name in enumerate(names))
    train = [f"{folder}/{stem} {k + 1}\n" for k, (folder, stem) in enumerate(map(_train_file, _train_keys(request)))]
    solution = "".join(f"ILSVRC2012_val_{i + 1:08d},{names[i % len(names)]} 0 0 1 1\n" for i in range(val))
    texts = {
        "LOC_synset_mapping.txt": mapping,
        VAL_LABELS: "ImageId,PredictionString\n" + solution,
        "ILSVRC/ImageSets/CLS-LOC/train_cls.txt": "".join(train),
    }
    return [store(root, file, text.encode()) for file, text in texts.items()]


MAKER = TreeMaker(images, extras, mean_bytes=114_660)


def class_name(number: int) -> str:
    """A name of the real names' form, n and eight digits, outside the range that WordNet uses."""
    return f"n9{number:07d}"


@lru_cache(maxsize=2)
def _class_ends(seed: int, total: int, classes: int) -> tuple[int, ...]:
    """Where each class's images end: nine classes of ten are full, the others smaller (732 to 1,300)."""
    rng = np.random.default_rng([seed, 5])
    weights = np.where(rng.random(classes) < 0.895, 1300.0, rng.uniform(732, 1300, classes))
    return tuple(accumulate(spread(total, weights.tolist())))


def _train_keys(request: Request) -> list[tuple[int, int]]:
    total, classes = request.counts["train"], int(request.options["classes"])
    return [_place(request.seed, total, classes, index) for index in range(total)]


def _place(seed: int, total: int, classes: int, index: int) -> tuple[int, int]:
    """(class, number within it) of a training image."""
    ends = _class_ends(seed, total, classes)
    label = bisect.bisect_right(ends, index)
    return label, index - (ends[label - 1] if label else 0)


def _train_file(key: tuple[int, int]) -> tuple[str, str]:
    name = class_name(key[0])
    return name, f"{name}_{key[1] * 7 + 3}"


def _image(part: TreePart, index: int) -> list[Produced]:
    request, is_train = part.request, part.split == "train"
    classes = int(request.options["classes"])
    rng = np.random.default_rng([request.seed, int(not is_train), index])
    if is_train:
        label, number = _place(request.seed, request.counts["train"], classes, index)
        folder, stem = _train_file((label, number))
        place = f"train/{folder}/{stem}"
    else:
        label, stem, folder = index % classes, f"ILSVRC2012_val_{index + 1:08d}", "val"
        place = f"val/{stem}"
    width, height = image_size(rng)
    picture = photograph(look_of(label, request.seed), width, height, rng)
    content = _encoded(picture, index, request.counts["train"] if is_train else 0, rng)
    produced = [store(part.root, f"{DATA}/{place}.JPEG", content)]
    if not is_train or rng.random() < ANNOTATED:
        text = _annotation(folder, stem, class_name(label), width, height, rng)
        produced.append(store(part.root, f"{ANNOTATIONS}/{place}.xml", text.encode()))
    return produced


def image_size(rng: np.random.Generator) -> tuple[int, int]:
    """(width, height): mostly 500 pixels along the longer side, some smaller, and a long tail of large ones."""
    kind = rng.random()
    if kind < 0.70:
        longer = 500.0
    elif kind < 0.92:
        longer = rng.uniform(150, 500)
    else:
        longer = 500 * np.exp(abs(rng.normal(0, 0.62)))
    ratio = rng.choice([0.75, 0.667, 1.0, rng.uniform(0.5, 1.0)], p=[0.53, 0.24, 0.05, 0.18])
    long_side = int(min(longer, _LARGEST))
    short_side = max(int(long_side * ratio), 20)
    return (long_side, short_side) if rng.random() < 0.79 else (short_side, long_side)


def _encoded(picture: Image.Image, index: int, total: int, rng: np.random.Generator) -> bytes:
    quality = 96 if rng.random() < 0.93 else int(rng.choice([75, 85, 90, 95]))
    grey = rng.random() < GREY
    if total and index == total // 3:
        return png_bytes(picture)
    if total and index % _CMYK_EVERY == min(total, _CMYK_EVERY) // 2:
        return jpeg_bytes(picture.convert("CMYK"), quality)
    if grey or (total and index == total // 5):
        return jpeg_bytes(picture.convert("L"), quality)
    return jpeg_bytes(picture, quality)


def _annotation(folder: str, stem: str, name: str, width: int, height: int, rng: np.random.Generator) -> str:
    boxes = []
    for _ in range(1 + int(rng.poisson(EXTRA_BOXES))):
        (x1, x2), (y1, y2) = (np.sort(rng.beta([0.8, 3.0], [3.0, 0.8])) for _ in range(2))
        xmin, ymin = min(int(x1 * width), width - 2), min(int(y1 * height), height - 2)
        xmax, ymax = max(int(x2 * width), xmin + 1), max(int(y2 * height), ymin + 1)
        boxes.append(
            f"\t<object>\n\t\t<name>{escape(name)}</name>\n\t\t<pose>Unspecified</pose>\n"
            "\t\t<truncated>0</truncated>\n\t\t<difficult>0</difficult>\n"
            f"\t\t<bndbox>\n\t\t\t<xmin>{xmin}</xmin>\n\t\t\t<ymin>{ymin}</ymin>\n"
            f"\t\t\t<xmax>{xmax}</xmax>\n\t\t\t<ymax>{ymax}</ymax>\n\t\t</bndbox>\n\t</object>\n"
        )
    return (
        f"<annotation>\n\t<folder>{folder}</folder>\n\t<filename>{stem}</filename>\n"
        "\t<source>\n\t\t<database>synthetic</database>\n\t</source>\n"
        f"\t<size>\n\t\t<width>{width}</width>\n\t\t<height>{height}</height>\n\t\t<depth>3</depth>\n\t</size>\n"
        f"\t<segmented>0</segmented>\n{''.join(boxes)}</annotation>\n"
    )
