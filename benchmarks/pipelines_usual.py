"""What the pipelines are held against: the least that a CPU must do for an image, and loaders as tutorials write them.

Each maker takes the image tree and the number of cores and gives an endless iterator whose items are batches, or, for
the limit, a function that handles all images once.
"""

from __future__ import annotations

import io
import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from harness.datasets.imagenet import read

BATCH = 32
SIDE = 224
#: decoded pixels of the largest image of the set, with room to spare
_SCRATCH_BYTES = 64 << 20
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def image_files(tree: Path) -> tuple[list[str], list[int]]:
    """All training images of the tree, and their classes."""
    found = read(tree).train
    return [str(found.root / file) for file in found.files], [int(label) for label in found.labels]


def limit(tree: Path, part: int, parts: int, threads: int) -> Callable[[], int]:
    """Decode and resize all images of one of ``parts`` equal shares, from memory, in a loop that does nothing else.

    libjpeg-turbo decodes to no more than twice the size that is needed, torch resizes bytes with vector instructions:
    the cheapest ways that we know. Pixels are decoded into memory that is used again and again, and thrown away.
    """
    import simplejpeg
    import torch

    torch.set_num_threads(1)
    contents = _share([Path(file).read_bytes() for file in image_files(tree)[0]], part, parts)

    def work(numbers: Iterator[int]) -> None:
        scratch = np.empty(_SCRATCH_BYTES, np.uint8)
        for number in numbers:
            if number >= len(contents):
                return
            try:
                pixels = simplejpeg.decode_jpeg(
                    contents[number], "RGB", min_height=SIDE, min_width=SIDE, min_factor=2, buffer=scratch
                )
            except ValueError:  # the few that are PNG or CMYK
                pixels = np.array(Image.open(io.BytesIO(contents[number])).convert("RGB"))
            image = torch.from_numpy(pixels)[None].permute(0, 3, 1, 2)
            torch.nn.functional.interpolate(image, (SIDE, SIDE), mode="bilinear", antialias=True)

    def once() -> int:
        numbers = itertools.count()
        running = [threading.Thread(target=work, args=(numbers,)) for _ in range(threads - 1)]
        for thread in running:
            thread.start()
        work(numbers)
        for thread in running:
            thread.join()
        return len(contents)

    return once


def _share(contents: list[bytes], part: int, parts: int) -> list[bytes]:
    """So that all parts have as many bytes, the largest images first to whoever has least."""
    shares: list[list[bytes]] = [[] for _ in range(parts)]
    loads = [0] * parts
    for content in sorted(contents, key=len, reverse=True):
        least = loads.index(min(loads))
        shares[least].append(content)
        loads[least] += len(content)
    return shares[part]


def usual_torch(
    tree: Path, cores: int, batch: int = BATCH, side: int = SIDE, pin_memory: bool = False
) -> Iterator[Any]:
    """A ``DataLoader`` with a worker for each core, Pillow and torchvision's transforms; epochs laid end to end."""
    import torch.utils.data

    from harness.pipelines.torchvision_compat import torchvision

    transforms = torchvision.transforms
    transform = transforms.Compose(
        [transforms.Resize((side, side)), transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    )
    files, labels = image_files(tree)

    class Photographs(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return len(files)

        def __getitem__(self, index: int) -> Any:
            with Image.open(files[index]) as image:
                return transform(image.convert("RGB")), labels[index]

    dataset = Photographs()
    # an epoch that never ends: with real data sets the seams between epochs are rare
    sampler = torch.utils.data.RandomSampler(dataset, num_samples=1 << 30)
    loader = torch.utils.data.DataLoader(dataset, batch, sampler=sampler, num_workers=cores, pin_memory=pin_memory)
    return iter(loader)


def usual_tensorflow(tree: Path, cores: int) -> Iterator[Any]:
    """tf.data with everything left to AUTOTUNE, ``decode_jpeg`` and ``tf.image.resize``."""
    import tensorflow as tf

    files, labels = image_files(tree)

    def load(file: Any, label: Any) -> Any:
        image = tf.io.decode_jpeg(tf.io.read_file(file), channels=3)
        return tf.image.resize(image, (SIDE, SIDE)) / 255.0, label

    dataset = tf.data.Dataset.from_tensor_slices((files, labels)).shuffle(len(files)).repeat()
    dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return iter(dataset)
