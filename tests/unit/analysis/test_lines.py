"""Lines read fast are the records that the careful parser gives, whatever is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.analysis import lines
from harness.files import json_line, parse_line, read_json_lines, sealed_line

GOOD = [sealed_line({"event": "loss", "value": n / 7, "text": "größer\n"}).encode()[:-1] for n in range(4)]
ODD = [
    b"",
    b"[1, 2]",
    b'{"a": 1},{"b": 2}',
    b'{"a": [1',
    b"2]}",
    b'{"a": NaN}',
    b"\x00\xff",
    b'{"a": 1}\r',
    GOOD[0][:-30],
    GOOD[1].replace(b"0.14", b"0.24"),
    json_line({"unsealed": True}).encode()[:-1],
    GOOD[2] + GOOD[3],
    GOOD[0] + b"\r",
]


@pytest.mark.parametrize("line", GOOD + ODD)
def test_a_line_is_what_the_careful_parser_says(line: bytes) -> None:
    assert list(lines.records_of([line])) == [parse_line(line)]


def test_a_line_longer_than_a_block_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 16)
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n".join([*GOOD, b"", GOOD[0]]))
    assert list(lines.records(path)) == list(read_json_lines(path))
    assert len(list(lines.records(path))) == 5
    assert list(lines.records(tmp_path / "none")) == []
