"""New files, made durable together: one by one, a thousand attempts would wait long for the disk."""

from __future__ import annotations

import os
from pathlib import Path

from harness.files import naming


def write_new(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Make the file ``path``, which must not exist; a crash may yet lose it, or a part of it."""
    with naming(path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            rest = content if isinstance(content, bytes) else content.encode()
            while rest:
                rest = rest[os.write(handle, rest) :]
        finally:
            os.close(handle)


def sync(*paths: Path) -> None:
    """Make files, and the names in directories, durable."""
    for path in paths:
        with naming(path):
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def sync_file_system(path: Path) -> None:
    """Make everything durable that was written to the file system of ``path``: syncfs(2), which Python does not have.

    Others' data there are waited for, too, so this is for many files at once.
    """
    import ctypes  # here, since looking needs it not

    with naming(path):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
            if call is None:  # a C library without it
                os.sync()
            elif call(handle) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
        finally:
            os.close(handle)
