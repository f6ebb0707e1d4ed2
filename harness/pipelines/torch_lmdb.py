"""Encoded images in LMDB shards through a torch ``DataLoader``.

The same as ``torch_files`` but for where the bytes come from: a few large files mapped into memory, so there is neither
a directory to look up nor a file to open for each image.
"""

from __future__ import annotations

from harness.pipelines.assembly import encoded_assembler, order_of
from harness.pipelines.decoding import PillowDecoder
from harness.pipelines.encoded import open_library
from harness.pipelines.torch_loader import ImageLoader, epoch_of, finish_of
from harness.runtime.interfaces import RunContext


def build(context: RunContext) -> ImageLoader:
    """The pipeline of one rank; the shards opened here are read by all its workers.

    Raises:
        UserError: no LMDB conversion where the data should be, or fewer images than ranks.
    """
    library = open_library(context)
    made = encoded_assembler(context, library, PillowDecoder(), finish_of(context))
    return ImageLoader(context, made, epoch_of(context, order_of(context, len(library))))
