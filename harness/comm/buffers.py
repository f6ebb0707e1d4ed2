"""Several arrays as one buffer, so that they travel in one message, and back. numpy is passed in: ranks may lack it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def float32_arrays(numpy: Any, arrays: Sequence[Any]) -> list[Any]:
    """The arrays as they are.

    Raises:
        TypeError: for an array of another type, whose conversion would hide a loss of precision.
    """
    arrays = [numpy.asarray(array) for array in arrays]
    for position, array in enumerate(arrays):
        if array.dtype != numpy.float32:
            raise TypeError(f"array {position} is {array.dtype}; gradients are exchanged as float32")
    return arrays


def split(buffer: Any, shapes_of: Sequence[Any]) -> list[Any]:
    """Views of ``buffer`` in the shapes of the arrays that were joined in it."""
    parts, begin = [], 0
    for array in shapes_of:
        parts.append(buffer[begin : begin + array.size].reshape(array.shape))
        begin += array.size
    return parts


def join_bytes(numpy: Any, arrays: Sequence[Any]) -> Any:
    """All arrays' bytes one after another, uint8; for arrays of any type, such as running averages and counters."""
    views = [numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8) for array in arrays]
    return numpy.concatenate(views) if views else numpy.empty(0, numpy.uint8)


def split_bytes(numpy: Any, buffer: Any, like: Sequence[Any]) -> list[Any]:
    """New arrays of the types and shapes of ``like`` from what :func:`join_bytes` made."""
    parts, begin = [], 0
    for array in map(numpy.asarray, like):
        end = begin + array.nbytes
        parts.append(buffer[begin:end].copy().view(array.dtype).reshape(array.shape))
        begin = end
    return parts
