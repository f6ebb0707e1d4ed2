"""Crash-proof files: every byte offset of a cut is tried."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.errors import of_the_system
from harness.files import Appender, json_line, read_json_lines, write_atomically, write_whole


def test_write_atomically_replaces_and_leaves_no_temporary(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file with $(space)"
    write_atomically(target, "one")
    write_atomically(target, b"two", mode=0o600)
    assert target.read_bytes() == b"two"
    assert target.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in target.parent.iterdir()] == [target.name]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "file"
    write_atomically(target, "old")

    def full_disk(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(target, "new")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_an_appender_continues_after_a_cut_at_any_byte(tmp_path: Path) -> None:
    records = [{"n": n, "text": "Zürich\n" * n} for n in range(4)]
    whole = "".join(json_line(r) for r in records).encode()
    ends = [0]
    for record in records:
        ends.append(ends[-1] + len(json_line(record).encode()))
    for cut in range(len(whole) + 1):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(whole[:cut])
        with Appender(path) as appender:
            appender.append({"n": 99})
        # a line whose newline alone was cut off is whole
        complete = sum(end <= cut or end - 1 == cut for end in ends[1:])
        torn: list[int] = []
        assert list(read_json_lines(path, torn)) == [*records[:complete], {"n": 99}], cut
        assert len(torn) <= 1


def test_lines_that_are_no_object_are_reported_by_number(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":1}\n[1]\n\xff\xfe\n\n{"b":2}\n')
    torn: list[int] = []
    assert list(read_json_lines(path, torn)) == [{"a": 1}, {"b": 2}]
    assert torn == [2, 3]


def test_a_missing_file_has_no_records(tmp_path: Path) -> None:
    assert list(read_json_lines(tmp_path / "absent")) == []


def test_json_has_no_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_line({"x": float("nan")})
    assert json.loads(json_line({"x": "é"})) == {"x": "é"}


class Filling:
    """A raw stream on a disk with room for ``room`` more bytes."""

    def __init__(self, room: int):
        self.content, self.room = bytearray(b"before\n"), room

    def seek(self, offset: int, whence: int) -> int:
        return len(self.content)

    def truncate(self, size: int) -> None:
        del self.content[size:]

    def write(self, data: memoryview) -> int:
        part = bytes(data[: self.room])
        if not part:
            raise OSError(28, "No space left on device")
        self.content += part
        self.room -= len(part)
        return len(part)


def test_a_line_is_written_whole_or_not_at_all() -> None:
    enough, too_little = Filling(room=5), Filling(room=4)
    write_whole(enough, b"line\n")  # type: ignore[arg-type]
    assert enough.content == b"before\nline\n"
    with pytest.raises(OSError, match="No space left"):
        write_whole(too_little, b"line\n")  # type: ignore[arg-type]
    assert too_little.content == b"before\n"


def test_a_failure_names_the_file_that_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(tmp_path / "table", "new")
    assert caught.value.filename == str(tmp_path / "table")
    assert of_the_system(caught.value).startswith(f"{tmp_path}/table: No space left on device; make room there")


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "𝄞" * 63])
def test_the_longest_names_are_written(tmp_path: Path, name: str) -> None:
    write_atomically(tmp_path / name, "new")
    assert (tmp_path / name).read_text() == "new"


def test_what_the_system_refused_is_told_with_a_remedy() -> None:
    assert of_the_system(PermissionError(13, "Permission denied", "/a")).startswith("/a: Permission denied; change its")
    assert of_the_system(OSError(28, "No space left on device"), "/b").startswith("/b: No space left on device; make")
    assert of_the_system(TimeoutError("nothing came")) == "nothing came"
