"""CIFAR-10's pickles: Python 2 pickles of a dictionary holding a numpy array, read without trusting them."""

from __future__ import annotations

import codecs
import io
import pickle
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.errors import UserError

# np.empty(0).__reduce__() names the function that rebuilds an array under whatever module numpy keeps it today
_RECONSTRUCT = np.empty(0, np.uint8).__reduce__()[0]
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): codecs.encode,
}


class _Unpickler(pickle.Unpickler):
    """Builds plain values and numpy arrays only: a pickle may otherwise call anything."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"refused to load {module}.{name}") from None


def load(content: bytes, file: str) -> dict[bytes, Any]:
    """The dictionary in a CIFAR-10 batch, its keys and texts as bytes.

    Raises:
        UserError: naming ``file``, where the content is no such pickle or asks for anything but arrays.
    """
    try:
        batch = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # a damaged pickle raises nearly anything: ValueError, KeyError, MemoryError …
        raise UserError(f"{file}: no readable CIFAR-10 batch ({error}); make or fetch the set again") from None
    if not isinstance(batch, dict):
        raise UserError(f"{file}: no CIFAR-10 batch: its pickle holds a {type(batch).__name__}, not a dictionary")
    return {key.encode() if isinstance(key, str) else key: value for key, value in batch.items()}


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
