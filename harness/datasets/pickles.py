"""CIFAR-10's pickles: Python 2 pickles of a dictionary holding a numpy array, read without trusting them.

Nothing of numpy takes part in unpickling: a pickle may give numpy's own dtype any flags, and with those that claim to
hold references numpy reads memory that is not there. Stand-ins only record what the pickle says; the array is built
from it after it has been checked.
"""

from __future__ import annotations

import io
import math
import pickle
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.errors import UserError


class _Dtype:
    """What the pickle calls its dtype."""

    def __init__(self, name: Any = "", *_: Any):
        self.name = name

    def __setstate__(self, state: Any) -> None:
        """Byte order and flags: of no use for single bytes."""


class _Array:
    """What the pickle says of an array: (version, shape, dtype, column order, bytes)."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _encode(text: str, codec: str) -> bytes:
    """How Python 3 writes bytes for Python 2; of all codecs only this one."""
    if codec not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"refused to encode as {codec}")
    return text.encode("latin-1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
}


class _Unpickler(pickle._Unpickler):
    """Builds plain values and the stand-ins above only: a pickle may otherwise call anything.

    The unpickler written in Python: the one in C takes gigabytes when a damaged byte becomes a large memo number.
    """

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"refused to load {module}.{name}") from None


def load(content: bytes, file: str) -> dict[bytes, Any]:
    """The dictionary in a CIFAR-10 batch, its keys and texts as bytes, its arrays uint8.

    Raises:
        UserError: naming ``file``, where the content is no such pickle or asks for anything but such arrays.
    """
    try:
        batch = _Unpickler(io.BytesIO(content), encoding="bytes").load()
        if not isinstance(batch, dict):
            raise pickle.UnpicklingError(f"it holds a {type(batch).__name__}, not a dictionary")
        return {_key(key): _built(value) if isinstance(value, _Array) else value for key, value in batch.items()}
    except Exception as error:  # a damaged pickle raises nearly anything: ValueError, KeyError, MemoryError …
        raise UserError(f"{file}: no readable CIFAR-10 batch ({error}); make or fetch the set again") from None


def _key(key: Any) -> Any:
    return key.encode() if isinstance(key, str) else key


def _built(array: _Array) -> npt.NDArray[np.uint8]:
    """The array that a stand-in describes.

    Raises:
        pickle.UnpicklingError: it is no array of bytes, or its bytes do not fill its shape.
    """
    try:
        _, shape, dtype, column_order, content = array.state
        is_bytes = isinstance(dtype, _Dtype) and dtype.name in ("u1", b"u1") and isinstance(content, bytes)
        whole = all(type(n) is int and n >= 0 for n in shape) and math.prod(shape) == len(content)
    except (TypeError, ValueError):
        raise pickle.UnpicklingError("its array is damaged") from None
    if not is_bytes or not whole:
        raise pickle.UnpicklingError("its array holds no bytes (uint8) that fill its shape")
    filled: npt.NDArray[np.uint8] = np.frombuffer(content, np.uint8).reshape(shape, order="F" if column_order else "C")
    return filled


def dump(batch: dict[bytes, Any]) -> bytes:
    """``batch`` as Python 2 pickled it (protocol 2, byte strings), so that any reader of the real files reads it.

    A Python 3 pickle would not do: readers take its keys as text with ``encoding="latin1"`` (torchvision) or as
    bytes with ``encoding="bytes"`` (Keras), and only Python 2's byte strings become either. Values may be
    byte strings, integers, lists of these, and uint8 arrays of two dimensions.
    """
    return b"\x80\x02" + _value(batch) + b"."


def _value(value: Any) -> bytes:
    if isinstance(value, bytes):
        if len(value) < 256:
            return b"U" + bytes([len(value)]) + value
        return b"T" + struct.pack("<i", len(value)) + value
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, list):
        return b"](" + b"".join(map(_value, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(_value(key) + _value(item) for key, item in value.items()) + b"u"
    return _array(value)


def _array(array: npt.NDArray[np.uint8]) -> bytes:
    rows, columns = array.shape
    empty = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + b"K\x00\x85" + _value(b"b") + b"\x87R"
    dtype = b"cnumpy\ndtype\n" + _value(b"u1") + b"K\x00K\x01\x87R"
    dtype_state = b"(K\x03" + _value(b"|") + b"NNN" + _value(-1) * 2 + b"K\x00tb"
    shape = _value(rows) + _value(columns) + b"\x86"
    state = b"(K\x01" + shape + dtype + dtype_state + b"\x89" + _value(array.tobytes()) + b"tb"
    return empty + state
