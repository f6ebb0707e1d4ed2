"""Image files through a torch ``DataLoader``: read, decode whole, crop or resize, by Pillow as torchvision does.

Images are handed over as bytes; the session scales them on the device, where the usual "to tensor" makes floats of four
times the size in the worker.
"""

from __future__ import annotations

from harness.pipelines.assembly import encoded_assembler, order_of
from harness.pipelines.decoding import PillowDecoder
from harness.pipelines.encoded import open_library
from harness.pipelines.torch_loader import ImageLoader, epoch_of, finish_of
from harness.runtime.interfaces import RunContext


def build(context: RunContext) -> ImageLoader:
    """The pipeline of one rank.

    Raises:
        UserError: no image tree where the data should be, fewer files than ranks, or axes that contradict each other.
    """
    library = open_library(context)
    made = encoded_assembler(context, library, PillowDecoder(), finish_of(context))
    return ImageLoader(context, made, epoch_of(context, order_of(context, len(library))))
