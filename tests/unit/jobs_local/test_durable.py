"""New files: whole or an error that names them, and never in place of another."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.jobs.durable import write_new

TEXT = "é\n" * 1000


def takes_at_most(count: int) -> Callable[[int, bytes], int]:
    """A write call that takes a part, as that of a disk nearly full or of a signal's moment."""
    write = os.write
    return lambda handle, data: write(handle, bytes(data[:count]))


@pytest.mark.parametrize("content", ["", TEXT, TEXT.encode()])
def test_a_file_is_written_whole_however_much_the_system_takes_at_once(
    content: str | bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "write", takes_at_most(7))
    write_new(tmp_path / "new", content, mode=0o755)
    assert (tmp_path / "new").read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert os.access(tmp_path / "new", os.X_OK)


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("kept")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "old", TEXT)
    assert (tmp_path / "old").read_text() == "kept"


def test_a_failure_names_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(_handle: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left") as raised:
        write_new(tmp_path / "new", TEXT)
    assert raised.value.filename == str(tmp_path / "new")
