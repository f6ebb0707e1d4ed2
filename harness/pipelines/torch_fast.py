"""Image files or LMDB shards read, decoded and resized by threads of the training process: what is possible.

Against a ``DataLoader`` of processes it saves decoding pixels that resizing would throw away, the slow resize, and
sending batches between processes: threads write into the batch itself. libjpeg-turbo, torch's resize and reading files
all let go of Python's lock. See docs/performance.md for what each of these is worth.
"""

from __future__ import annotations

import sys
import threading

import numpy as np
import torch

from harness.pipelines.assembly import encoded_assembler
from harness.pipelines.decoding import FastDecoder, Pixels
from harness.pipelines.encoded import open_library
from harness.pipelines.torch_loader import finish_of, pinned
from harness.pipelines.torch_threads import ThreadLoader
from harness.runtime.interfaces import RunContext


def build(context: RunContext) -> ThreadLoader:
    """The pipeline of one rank; ``workers`` are threads (0: the training thread itself).

    Raises:
        UserError: simplejpeg is not installed, no images where they should be, or fewer than ranks.
    """
    made = encoded_assembler(context, open_library(context), FastDecoder(resize), finish_of(context))
    made.allocate = _page_locked if pinned(context) else Recycled()
    return ThreadLoader(context, made)


class Recycled:
    """Memory for batches, the same again once nobody refers to it: new memory has to be cleared page by page first.

    What is handed out counts as free when this list holds the only reference. A tensor made of it, or a view, refers
    to it as long as it lives.
    """

    def __init__(self) -> None:
        self._made: list[Pixels] = []
        self._lock = threading.Lock()
        # the list's reference and that of the call, which interpreters count as they like
        listed = [np.empty(0, np.uint8)]
        self._unused = sys.getrefcount(listed[0])

    def __call__(self, shape: tuple[int, ...]) -> Pixels:
        with self._lock:
            for at in range(len(self._made)):
                if sys.getrefcount(self._made[at]) == self._unused and self._made[at].shape == shape:
                    return self._made[at]
            self._made.append(np.empty(shape, np.uint8))
            return self._made[-1]


def resize(pixels: Pixels, height: int, width: int) -> Pixels:
    """uint8 ``(h, w, c)`` → ``(height, width, c)``, bilinear with antialiasing; within 1 of Pillow's.

    For uint8 images with their channels last, torch has a vectorised version of the resize that Pillow does. The axis
    of the batch is added before the permutation: behind it, its stride would tell torch that channels come first.
    """
    if pixels.shape[:2] == (height, width):
        return pixels
    image = torch.from_numpy(pixels)[None].permute(0, 3, 1, 2)
    found = torch.nn.functional.interpolate(image, (height, width), mode="bilinear", antialias=True)
    made: Pixels = found[0].permute(1, 2, 0).numpy()
    return made


def _page_locked(shape: tuple[int, ...]) -> Pixels:
    made: Pixels = torch.empty(shape, dtype=torch.uint8, pin_memory=True).numpy()
    return made
